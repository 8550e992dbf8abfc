// RUN: plait-opt %s -p fuse-form-groups,fuse-optimal --split-input-file | filecheck %s
// RUN: plait-opt %s -p fuse-form-groups,fuse-optimal --split-input-file --remarks 2>&1 | filecheck %s --check-prefix REMARK
// RUN: plait-opt %s -p 'fuse-form-groups,fuse-optimal{limit_s=0.0}' --split-input-file --remarks 2>&1 | filecheck %s --check-prefix SHORT

// Two reduces of one buffer and a map that needs one of them: a row stays on chip, so one kernel
// reads the buffer once.

// CHECK-LABEL: func.func @one_kernel(
// CHECK:         fuse.group
// CHECK-NOT:     fuse.group
// CHECK:         func.return
// REMARK: analysis: [fuse.optimal] 1 kernels, no plan moves less, bytes: 32896, bound: 32896
// SHORT: analysis: [fuse.optimal]
func.func @one_kernel(%x: tensor<32x128xf32>) -> (tensor<32x128xf32>, tensor<32xf32>) {
  %0 = lazy.reduce sum %x axes = [1] : tensor<32x128xf32> -> tensor<32xf32>
  %1 = lazy.reduce max %x axes = [1] : tensor<32x128xf32> -> tensor<32xf32>
  %2 = lazy.reshape %0 : tensor<32xf32> -> tensor<32x1xf32>
  %3 = lazy.expand %2 : tensor<32x1xf32> -> tensor<32x128xf32>
  %4 = lazy.mul %x, %3 : tensor<32x128xf32>
  func.return %4, %1 : tensor<32x128xf32>, tensor<32xf32>
}

// -----

// A scan runs in order along its axis: nothing joins it.

// CHECK-LABEL: func.func @in_order(
// CHECK:         fuse.group "scan_0"
// CHECK:         fuse.group "sum_1"
// REMARK: analysis: [fuse.optimal] 2 kernels, no plan moves less
func.func @in_order(%x: tensor<32x128xf32>) -> (tensor<32x128xf32>, tensor<f32>) {
  %0 = lazy.scan sum %x axis = 1 : tensor<32x128xf32> -> tensor<32x128xf32>
  %1 = lazy.reduce sum %0 axes = [0, 1] : tensor<32x128xf32> -> tensor<f32>
  func.return %0, %1 : tensor<32x128xf32>, tensor<f32>
}
