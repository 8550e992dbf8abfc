// RUN: plait-opt %s -p fuse-group-crossing-dag --split-input-file | filecheck %s
// RUN: plait-opt %s -p fuse-group-crossing-dag,fuse-group-crossing-dag --split-input-file | filecheck %s

// Two merges that exclude each other: the one over the larger buffer is made, wherever it stands.

// CHECK-LABEL: func.func @second_pair_is_larger(
// CHECK-NEXT:    %[[A:.*]] = fuse.group "sum_0" (%{{.*}} = %x
// CHECK-NEXT:      lazy.reduce
// CHECK:         %[[B:.*]], %[[C:.*]] = fuse.group "sum_1+1" (%{{.*}} = %y : tensor<8x8xf64>, %{{.*}} = %[[A]] : tensor<f32>) -> tensor<f64>, tensor<f64> {
// CHECK:         %[[D:.*]] = fuse.group "sum_3" (%{{.*}} = %x : tensor<8x8xf32>, %{{.*}} = %[[B]] : tensor<f64>) -> tensor<f32> {
// CHECK:         func.return %[[C]], %[[D]]
func.func @second_pair_is_larger(%x: tensor<8x8xf32>, %y: tensor<8x8xf64>) -> (tensor<f64>, tensor<f32>) {
  %0 = fuse.group "sum_0" (%a = %x : tensor<8x8xf32>) -> tensor<f32> {
    %s = lazy.reduce sum %a axes = [0, 1] : tensor<8x8xf32> -> tensor<f32>
    fuse.yield %s : tensor<f32>
  }
  %1 = fuse.group "sum_1" (%a = %y : tensor<8x8xf64>) -> tensor<f64> {
    %s = lazy.reduce sum %a axes = [0, 1] : tensor<8x8xf64> -> tensor<f64>
    fuse.yield %s : tensor<f64>
  }
  %2 = fuse.group "sum_2" (%a = %y : tensor<8x8xf64>, %b = %0 : tensor<f32>) -> tensor<f64> {
    %c = lazy.cast %b : tensor<f32> -> tensor<f64>
    %d = lazy.reshape %c : tensor<f64> -> tensor<1x1xf64>
    %e = lazy.expand %d : tensor<1x1xf64> -> tensor<8x8xf64>
    %f = lazy.add %a, %e : tensor<8x8xf64>
    %s = lazy.reduce sum %f axes = [0, 1] : tensor<8x8xf64> -> tensor<f64>
    fuse.yield %s : tensor<f64>
  }
  %3 = fuse.group "sum_3" (%a = %x : tensor<8x8xf32>, %b = %1 : tensor<f64>) -> tensor<f32> {
    %c = lazy.cast %b : tensor<f64> -> tensor<f32>
    %d = lazy.reshape %c : tensor<f32> -> tensor<1x1xf32>
    %e = lazy.expand %d : tensor<1x1xf32> -> tensor<8x8xf32>
    %f = lazy.add %a, %e : tensor<8x8xf32>
    %s = lazy.reduce sum %f axes = [0, 1] : tensor<8x8xf32> -> tensor<f32>
    fuse.yield %s : tensor<f32>
  }
  func.return %2, %3 : tensor<f64>, tensor<f32>
}

// -----

// A reduce that could join either of two joins one.

// CHECK-LABEL: func.func @either(
// CHECK:         fuse.group "sum_1" (
// CHECK:         fuse.group "sum_0+1" (
// CHECK-NOT:     fuse.group
func.func @either(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>, %z: tensor<4x8xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
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
  %2 = fuse.group "sum_2" (%a = %x : tensor<4x8xf32>) -> tensor<4xf32> {
    %s = lazy.reduce sum %a axes = [1] : tensor<4x8xf32> -> tensor<4xf32>
    fuse.yield %s : tensor<4xf32>
  }
  func.return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
