// RUN: plait-opt %s --convert-fuse-to-nest | filecheck %s

// Two sums over the same elements share a sweep; the larger output is stored in it.
// CHECK-LABEL: nest.kernel @stats(%a: memref<4x8xf32>, %{{.*}}: memref<4xf32>, %{{.*}}: memref<4xf32>) axes [%i0 = 4]
// CHECK-NEXT:    %[[S:[0-9]+]], %[[T:[0-9]+]] = nest.reduce [sum, sum] over [%r0 = 8] {
// CHECK-NEXT:      %[[V:.*]] = nest.load %a[(d0, d1) -> (d0, d1)](%i0, %r0) : memref<4x8xf32>
// CHECK-NEXT:      %[[Q:.*]] = arith.mulf %[[V]], %[[V]] : f32
// CHECK-NEXT:      nest.yield %[[V]], %[[Q]] : f32, f32
// CHECK-NEXT:    } : f32, f32
// CHECK-NEXT:    nest.store %[[S]], 
// CHECK-NEXT:    nest.store %[[T]], 

// Padding becomes a set under which the element is loaded, and a choice.
// CHECK-LABEL: nest.kernel @padded(%a: memref<4xf32>, %{{.*}}: memref<6xf32>) axes [%i0 = 6]
// CHECK:         nest.load %a[(d0) -> ((d0 + -1))](%i0) where (d0) : ((d0 + -1) >= 0, ((d0 * -1) + 4) >= 0) : memref<4xf32>
// CHECK:         nest.test (d0) : ((d0 + -1) >= 0, ((d0 * -1) + 4) >= 0) (%i0)
// CHECK:         arith.select

// A transposed output is stored through the transposed map.
// CHECK-LABEL: nest.kernel @transposed(
// CHECK:         nest.load %a[(d0, d1) -> (d0, d1)](%i0, %i1)
// CHECK:         nest.store %{{.*}}, %{{.*}}[(d0, d1) -> (d1, d0)](%i0, %i1) : memref<8x4xf32>

// CHECK-LABEL: func.func @main(
// CHECK:         memref.alloc() : memref<4xf32>
// CHECK:         nest.launch @stats
// CHECK:         nest.launch @padded
// CHECK:         nest.launch @transposed
func.func @main(%x: tensor<4x8xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<6xf32>, tensor<8x4xf32>) {
  %0, %1 = fuse.group "stats" (%a = %x : tensor<4x8xf32>) -> tensor<4xf32>, tensor<4xf32> {
    %s = lazy.reduce sum %a axes = [1] : tensor<4x8xf32> -> tensor<4xf32>
    %q = lazy.mul %a, %a : tensor<4x8xf32>
    %t = lazy.reduce sum %q axes = [1] : tensor<4x8xf32> -> tensor<4xf32>
    fuse.yield %s, %t : tensor<4xf32>, tensor<4xf32>
  }
  %2 = fuse.group "padded" (%a = %y : tensor<4xf32>) -> tensor<6xf32> {
    %p = lazy.pad %a low = [1] high = [1] interior = [0] value = 1.0 : f32 : tensor<4xf32> -> tensor<6xf32>
    %e = lazy.exp %p : tensor<6xf32>
    fuse.yield %e : tensor<6xf32>
  }
  %3 = fuse.group "transposed" (%a = %x : tensor<4x8xf32>) -> tensor<8x4xf32> {
    %e = lazy.exp %a : tensor<4x8xf32>
    %t = lazy.permute %e permutation = [1, 0] : tensor<4x8xf32> -> tensor<8x4xf32>
    fuse.yield %t : tensor<8x4xf32>
  }
  return %0, %1, %2, %3 : tensor<4xf32>, tensor<4xf32>, tensor<6xf32>, tensor<8x4xf32>
}

// A kept value is computed a row at a time into local memory; the other axes are the kernel's.

// CHECK-LABEL: nest.kernel @in_rows(
// CHECK-SAME:    axes [%i0 = 64]
// CHECK:         %[[ROW:.*]] = nest.local : memref<16xf32>
// CHECK:         nest.reduce [] over [%n0 = 16] {
// CHECK:           nest.store %{{.*}}, %[[ROW]][(d0) -> (d0)](%n0) : memref<16xf32>
// CHECK:         nest.reduce [] over [%n{{.*}} = 16] {
// CHECK:           nest.reduce [sum] over [%n{{.*}} = 16] {
// CHECK:             nest.load %[[ROW]]
func.func @rows(%x: tensor<64x16xf32>, %y: tensor<16x16xf32>) -> tensor<64x16xf32> {
  %0 = fuse.group "in_rows" (%a = %x : tensor<64x16xf32>, %b = %y : tensor<16x16xf32>) -> tensor<64x16xf32> {
    %1 = lazy.exp %a : tensor<64x16xf32>
    %2 = fuse.keep %1 : tensor<64x16xf32>
    %3 = lazy.reshape %2 : tensor<64x16xf32> -> tensor<64x16x1xf32>
    %4 = lazy.expand %3 : tensor<64x16x1xf32> -> tensor<64x16x16xf32>
    %5 = lazy.reshape %b : tensor<16x16xf32> -> tensor<1x16x16xf32>
    %6 = lazy.expand %5 : tensor<1x16x16xf32> -> tensor<64x16x16xf32>
    %7 = lazy.mul %4, %6 : tensor<64x16x16xf32>
    %8 = lazy.reduce sum %7 axes = [1] : tensor<64x16x16xf32> -> tensor<64x16xf32>
    fuse.yield %8 : tensor<64x16xf32>
  }
  func.return %0 : tensor<64x16xf32>
}
