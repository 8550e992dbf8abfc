// RUN: plait-opt %s -p fuse-form-groups,fuse-sweeps --split-input-file | filecheck %s
// RUN: plait-opt %s -p fuse-form-groups,fuse-sweeps,fuse-sweeps --split-input-file | filecheck %s

// Softmax: three sweeps over a row, one kernel, nothing stored between.

// CHECK-LABEL: func.func @softmax(
// CHECK-NEXT:    %[[R:.*]] = fuse.group "max_0+2" (%{{.*}} = %x : tensor<64x8xf32>) -> tensor<64x8xf32> {
// CHECK:           lazy.reduce max
// CHECK:           lazy.exp
// CHECK:           lazy.reduce sum
// CHECK:           lazy.div
// CHECK:         func.return %[[R]]
func.func @softmax(%x: tensor<64x8xf32>) -> tensor<64x8xf32> {
  %0 = lazy.reduce max %x axes = [1] : tensor<64x8xf32> -> tensor<64xf32>
  %1 = lazy.reshape %0 : tensor<64xf32> -> tensor<64x1xf32>
  %2 = lazy.expand %1 : tensor<64x1xf32> -> tensor<64x8xf32>
  %3 = lazy.sub %x, %2 : tensor<64x8xf32>
  %4 = lazy.exp %3 : tensor<64x8xf32>
  %5 = lazy.reduce sum %4 axes = [1] : tensor<64x8xf32> -> tensor<64xf32>
  %6 = lazy.reshape %5 : tensor<64xf32> -> tensor<64x1xf32>
  %7 = lazy.expand %6 : tensor<64x1xf32> -> tensor<64x8xf32>
  %8 = lazy.div %4, %7 : tensor<64x8xf32>
  func.return %8 : tensor<64x8xf32>
}

// -----

// A row of 256 KB does not stay on chip.

// CHECK-LABEL: func.func @long_rows(
// CHECK:         fuse.group "max_0" (
// CHECK:         fuse.group "map_1" (
func.func @long_rows(%x: tensor<64x65536xf32>) -> tensor<64x65536xf32> {
  %0 = lazy.reduce max %x axes = [1] : tensor<64x65536xf32> -> tensor<64xf32>
  %1 = lazy.reshape %0 : tensor<64xf32> -> tensor<64x1xf32>
  %2 = lazy.expand %1 : tensor<64x1xf32> -> tensor<64x65536xf32>
  %3 = lazy.sub %x, %2 : tensor<64x65536xf32>
  func.return %3 : tensor<64x65536xf32>
}
