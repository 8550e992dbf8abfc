// RUN: plait-opt %s -p fuse-merge-reduces --split-input-file | filecheck %s
// RUN: plait-opt %s -p fuse-merge-reduces,fuse-merge-reduces --split-input-file | filecheck %s

// Reduces that share their large load are one kernel; the shared work is done once.

// CHECK-LABEL: func.func @shared(
// CHECK-NEXT:    %[[R:.*]], %[[Q:.*]] = fuse.group "sum_0+1" (%[[A:.*]] = %x : tensor<4x8xf32>, %[[B:.*]] = %y : tensor<4xf32>) -> tensor<4xf32>, tensor<4xf32> {
// CHECK-NEXT:      %[[E:.*]] = lazy.exp %[[A]] : tensor<4x8xf32>
// CHECK-NEXT:      %[[S:.*]] = lazy.reduce sum %[[E]]
// CHECK-NEXT:      %[[M:.*]] = lazy.reduce max %[[E]]
// CHECK-NEXT:      %[[T:.*]] = lazy.add %[[M]], %[[B]]
// CHECK-NEXT:      fuse.yield %[[S]], %[[T]]
// CHECK-NEXT:    }
// CHECK-NEXT:    func.return %[[R]], %[[Q]]
func.func @shared(%x: tensor<4x8xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = fuse.group "sum_0" (%a = %x : tensor<4x8xf32>) -> tensor<4xf32> {
    %e = lazy.exp %a : tensor<4x8xf32>
    %s = lazy.reduce sum %e axes = [1] : tensor<4x8xf32> -> tensor<4xf32>
    fuse.yield %s : tensor<4xf32>
  }
  %1 = fuse.group "max_1" (%a = %x : tensor<4x8xf32>, %b = %y : tensor<4xf32>) -> tensor<4xf32> {
    %e = lazy.exp %a : tensor<4x8xf32>
    %s = lazy.reduce max %e axes = [1] : tensor<4x8xf32> -> tensor<4xf32>
    %t = lazy.add %s, %b : tensor<4xf32>
    fuse.yield %t : tensor<4xf32>
  }
  func.return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// -----

// Each would gain a large load: refused.

// CHECK-LABEL: func.func @adds_a_load(
// CHECK:         fuse.group "sum_0" (
// CHECK:         fuse.group "sum_1" (
func.func @adds_a_load(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>, %z: tensor<4x8xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = fuse.group "sum_0" (%a = %x : tensor<4x8xf32>, %b = %y : tensor<4x8xf32>) -> tensor<4xf32> {
    %e = lazy.add %a, %b : tensor<4x8xf32>
    %s = lazy.reduce sum %e axes = [1] : tensor<4x8xf32> -> tensor<4xf32>
    fuse.yield %s : tensor<4xf32>
  }
  %1 = fuse.group "sum_1" (%a = %x : tensor<4x8xf32>, %b = %z : tensor<4x8xf32>) -> tensor<4xf32> {
    %e = lazy.add %a, %b : tensor<4x8xf32>
    %s = lazy.reduce sum %e axes = [1] : tensor<4x8xf32> -> tensor<4xf32>
    fuse.yield %s : tensor<4xf32>
  }
  func.return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// -----

// One needs the other: refused.

// CHECK-LABEL: func.func @dependent(
// CHECK:         fuse.group "max_0" (
// CHECK:         fuse.group "sum_1" (
func.func @dependent(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %0 = fuse.group "max_0" (%a = %x : tensor<4x8xf32>) -> tensor<4xf32> {
    %s = lazy.reduce max %a axes = [1] : tensor<4x8xf32> -> tensor<4xf32>
    fuse.yield %s : tensor<4xf32>
  }
  %1 = fuse.group "sum_1" (%a = %x : tensor<4x8xf32>, %b = %0 : tensor<4xf32>) -> tensor<4xf32> {
    %c = lazy.reshape %b : tensor<4xf32> -> tensor<4x1xf32>
    %d = lazy.expand %c : tensor<4x1xf32> -> tensor<4x8xf32>
    %e = lazy.sub %a, %d : tensor<4x8xf32>
    %s = lazy.reduce sum %e axes = [1] : tensor<4x8xf32> -> tensor<4xf32>
    fuse.yield %s : tensor<4xf32>
  }
  func.return %1 : tensor<4xf32>
}
