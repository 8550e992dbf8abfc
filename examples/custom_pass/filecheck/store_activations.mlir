// RUN: plait-opt %s --load examples/custom_pass/custom_pass/__init__.py -p custom-store-activations,fuse-form-groups | filecheck %s

// The activation is stored, so that the sum reads it back: two kernels instead of one.

// CHECK-LABEL: func.func @main(
// CHECK:         fuse.group
// CHECK:           lazy.max
// CHECK-NOT:       lazy.reduce
// CHECK:         fuse.group
// CHECK:           lazy.reduce sum
func.func @main(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %zero = lazy.constant dense<0.0> : tensor<4x8xf32>
  %y = lazy.max %x, %zero : tensor<4x8xf32>
  %s = lazy.reduce sum %y axes = [1] : tensor<4x8xf32> -> tensor<4xf32>
  return %s : tensor<4xf32>
}
