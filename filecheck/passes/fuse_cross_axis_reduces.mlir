// RUN: plait-opt %s -p fuse-form-groups,fuse-cross-axis-reduces --split-input-file | filecheck %s
// RUN: plait-opt %s -p fuse-form-groups,fuse-cross-axis-reduces,fuse-cross-axis-reduces --split-input-file | filecheck %s
// RUN: plait-opt %s -p fuse-form-groups,fuse-cross-axis-reduces --split-input-file --remarks 2>&1 | filecheck %s --check-prefix REMARK

// The gradients of a weight and of its bias read one gradient.

// CHECK-LABEL: func.func @gradients(
// CHECK-NEXT:    %[[W:.*]], %[[B:.*]] = fuse.group "sum_0+1" (
// CHECK:         func.return %[[W]], %[[B]]
// REMARK: passed: [fuse.siblings-merged] made 'sum_0' and 'sum_1' one kernel, groups: sum_0 -> sum_1, saved: 2048
func.func @gradients(%g: tensor<32x16xf32>, %x: tensor<32x8xf32>)
    -> (tensor<16x8xf32>, tensor<16xf32>) {
  %0 = lazy.reshape %g : tensor<32x16xf32> -> tensor<32x16x1xf32>
  %1 = lazy.expand %0 : tensor<32x16x1xf32> -> tensor<32x16x8xf32>
  %2 = lazy.reshape %x : tensor<32x8xf32> -> tensor<32x1x8xf32>
  %3 = lazy.expand %2 : tensor<32x1x8xf32> -> tensor<32x16x8xf32>
  %4 = lazy.mul %1, %3 : tensor<32x16x8xf32>
  %5 = lazy.reduce sum %4 axes = [0] : tensor<32x16x8xf32> -> tensor<16x8xf32>
  %6 = lazy.reduce sum %g axes = [0] : tensor<32x16xf32> -> tensor<16xf32>
  func.return %5, %6 : tensor<16x8xf32>, tensor<16xf32>
}

// -----

// A sum over everything is longer than the sums along rows: it wants more threads.

// CHECK-LABEL: func.func @longer(
// CHECK:         fuse.group "sum_0"
// CHECK:         fuse.group "sum_1"
// REMARK: missed: [fuse.longer-reduce] 'sum_0' and 'sum_1' stay two kernels
func.func @longer(%x: tensor<1024x64xf32>) -> (tensor<1024xf32>, tensor<f32>) {
  %0 = lazy.reduce sum %x axes = [1] : tensor<1024x64xf32> -> tensor<1024xf32>
  %1 = lazy.reduce sum %x axes = [0, 1] : tensor<1024x64xf32> -> tensor<f32>
  func.return %0, %1 : tensor<1024xf32>, tensor<f32>
}

// -----

// 100 MB do not stay in cache between a reduce along rows and one along columns.

// CHECK-LABEL: func.func @large(
// CHECK:         fuse.group "sum_0"
// CHECK:         fuse.group "sum_1"
// REMARK: missed: [fuse.data-too-large] 'sum_0' and 'sum_1' stay two kernels
func.func @large(%x: tensor<5120x5120xf32>) -> (tensor<5120xf32>, tensor<5120xf32>) {
  %0 = lazy.reduce sum %x axes = [1] : tensor<5120x5120xf32> -> tensor<5120xf32>
  %1 = lazy.reduce sum %x axes = [0] : tensor<5120x5120xf32> -> tensor<5120xf32>
  func.return %0, %1 : tensor<5120xf32>, tensor<5120xf32>
}
