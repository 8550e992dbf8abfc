// RUN: plait-opt %s -p fuse-form-groups,fuse-elementwise-reduce --split-input-file | filecheck %s
// RUN: plait-opt %s -p fuse-form-groups,fuse-elementwise-reduce,fuse-elementwise-reduce --split-input-file | filecheck %s

// A value that is stored, and the reduce of it.

// CHECK-LABEL: func.func @stored_and_reduced(
// CHECK-NEXT:    %{{.*}}, %{{.*}} = fuse.group "map_0+1" (%{{.*}} = %x : tensor<64x8xf32>) -> tensor<64x8xf32>, tensor<64xf32> {
// CHECK-NOT:     fuse.group
func.func @stored_and_reduced(%x: tensor<64x8xf32>) -> (tensor<64x8xf32>, tensor<64xf32>) {
  %0 = lazy.exp %x : tensor<64x8xf32>
  %1 = lazy.reduce sum %0 axes = [1] : tensor<64x8xf32> -> tensor<64xf32>
  func.return %0, %1 : tensor<64x8xf32>, tensor<64xf32>
}

// -----

// The full space would have to be walked again after the reduce: that is `fuse-sweeps`.

// CHECK-LABEL: func.func @again(
// CHECK:         fuse.group "max_0" (
// CHECK:         fuse.group "map_1" (
func.func @again(%x: tensor<64x8xf32>) -> tensor<64x8xf32> {
  %0 = lazy.reduce max %x axes = [1] : tensor<64x8xf32> -> tensor<64xf32>
  %1 = lazy.reshape %0 : tensor<64xf32> -> tensor<64x1xf32>
  %2 = lazy.expand %1 : tensor<64x1xf32> -> tensor<64x8xf32>
  %3 = lazy.sub %x, %2 : tensor<64x8xf32>
  func.return %3 : tensor<64x8xf32>
}
