// RUN: plait-opt %s -p fuse-form-groups --split-input-file | filecheck %s
// RUN: plait-opt %s -p fuse-form-groups,fuse-form-groups --split-input-file | filecheck %s

// A reduce takes its elementwise producers and its epilogue.

// CHECK-LABEL: func.func @producers_and_epilogue(
// CHECK-NEXT:    %[[S:.*]] = fuse.group "sum_0" (%[[A:.*]] = %x : tensor<4x8xf32>, %[[B:.*]] = %y : tensor<4xf32>) -> tensor<4xf32> {
// CHECK-NEXT:      %[[E:.*]] = lazy.exp %[[A]] : tensor<4x8xf32>
// CHECK-NEXT:      %[[R:.*]] = lazy.reduce sum %[[E]] axes = [1] : tensor<4x8xf32> -> tensor<4xf32>
// CHECK-NEXT:      %[[T:.*]] = lazy.add %[[R]], %[[B]] : tensor<4xf32>
// CHECK-NEXT:      fuse.yield %[[T]] : tensor<4xf32>
// CHECK-NEXT:    }
// CHECK-NEXT:    func.return %[[S]] : tensor<4xf32>
func.func @producers_and_epilogue(%x: tensor<4x8xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %0 = lazy.exp %x : tensor<4x8xf32>
  %1 = lazy.reduce sum %0 axes = [1] : tensor<4x8xf32> -> tensor<4xf32>
  %2 = lazy.add %1, %y : tensor<4xf32>
  func.return %2 : tensor<4xf32>
}

// -----

// A reduce that another reduce needs is stored; views go into the kernels that read through them.

// CHECK-LABEL: func.func @two_reduces(
// CHECK-NEXT:    %[[M:.*]] = fuse.group "max_0" (%{{.*}} = %x : tensor<4x8xf32>) -> tensor<4xf32> {
// CHECK:         %[[S:.*]] = fuse.group "sum_1" (%[[A:.*]] = %x : tensor<4x8xf32>, %[[B:.*]] = %[[M]] : tensor<4xf32>) -> tensor<4xf32> {
// CHECK-NEXT:      %[[C:.*]] = lazy.reshape %[[B]] : tensor<4xf32> -> tensor<4x1xf32>
// CHECK-NEXT:      %[[D:.*]] = lazy.expand %[[C]] : tensor<4x1xf32> -> tensor<4x8xf32>
// CHECK-NEXT:      %[[E:.*]] = lazy.sub %[[A]], %[[D]] : tensor<4x8xf32>
// CHECK-NEXT:      %[[R:.*]] = lazy.reduce sum %[[E]] axes = [1]
// CHECK-NEXT:      fuse.yield %[[R]]
func.func @two_reduces(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %0 = lazy.reduce max %x axes = [1] : tensor<4x8xf32> -> tensor<4xf32>
  %1 = lazy.reshape %0 : tensor<4xf32> -> tensor<4x1xf32>
  %2 = lazy.expand %1 : tensor<4x1xf32> -> tensor<4x8xf32>
  %3 = lazy.sub %x, %2 : tensor<4x8xf32>
  %4 = lazy.reduce sum %3 axes = [1] : tensor<4x8xf32> -> tensor<4xf32>
  func.return %4 : tensor<4xf32>
}

// -----

// Strided views of buffers, arguments and constants cost no kernel.

// CHECK-LABEL: func.func @free(
// CHECK-NOT:     fuse.group
// CHECK:         %[[P:.*]] = lazy.permute %x permutation = [1, 0]
// CHECK-NOT:     lazy.materialize
// CHECK:         func.return %x, %[[P]], %{{.*}}, %{{.*}}
func.func @free(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<8x4xf32>, tensor<2x8xf32>, tensor<3xf32>) {
  %0 = lazy.permute %x permutation = [1, 0] : tensor<4x8xf32> -> tensor<8x4xf32>
  %1 = lazy.slice %x starts = [1, 0] stops = [3, 8] steps = [1, 1] : tensor<4x8xf32> -> tensor<2x8xf32>
  %2 = lazy.materialize %1 : tensor<2x8xf32> -> tensor<2x8xf32>
  %3 = lazy.constant dense<1.0> : tensor<3xf32>
  func.return %x, %0, %2, %3 : tensor<4x8xf32>, tensor<8x4xf32>, tensor<2x8xf32>, tensor<3xf32>
}

// -----

// `materialize` of a permuted view is a copy.

// CHECK-LABEL: func.func @copy(
// CHECK-NEXT:    %{{.*}} = fuse.group "copy_0" (%[[A:.*]] = %x : tensor<4x8xf32>) -> tensor<8x4xf32> {
// CHECK-NEXT:      %[[P:.*]] = lazy.permute %[[A]]
// CHECK-NEXT:      fuse.yield %[[P]] : tensor<8x4xf32>
func.func @copy(%x: tensor<4x8xf32>) -> tensor<8x4xf32> {
  %0 = lazy.permute %x permutation = [1, 0] : tensor<4x8xf32> -> tensor<8x4xf32>
  %1 = lazy.materialize %0 : tensor<8x4xf32> -> tensor<8x4xf32>
  func.return %1 : tensor<8x4xf32>
}

// -----

// What costs much is stored before a product repeats it; what costs little is not.

// CHECK-LABEL: func.func @before_a_product(
// CHECK:         fuse.group "map_0" (%{{.*}} = %x : tensor<8x8xf32>) -> tensor<8x8xf32> {
// CHECK:         fuse.group "sum_1"
// CHECK:           lazy.neg
// CHECK-NOT:     fuse.group
func.func @before_a_product(%x: tensor<8x8xf32>, %y: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = lazy.exp %x : tensor<8x8xf32>
  %1 = lazy.neg %y : tensor<8x8xf32>
  %2 = lazy.reshape %0 : tensor<8x8xf32> -> tensor<8x8x1xf32>
  %3 = lazy.expand %2 : tensor<8x8x1xf32> -> tensor<8x8x8xf32>
  %4 = lazy.reshape %1 : tensor<8x8xf32> -> tensor<1x8x8xf32>
  %5 = lazy.expand %4 : tensor<1x8x8xf32> -> tensor<8x8x8xf32>
  %6 = lazy.mul %3, %5 : tensor<8x8x8xf32>
  %7 = lazy.reduce sum %6 axes = [1] : tensor<8x8x8xf32> -> tensor<8x8xf32>
  func.return %7 : tensor<8x8xf32>
}
