// RUN: plait-opt %s -p fuse-form-groups,fuse-contraction-chains --split-input-file | filecheck %s
// RUN: plait-opt %s -p fuse-form-groups,fuse-contraction-chains,fuse-contraction-chains --split-input-file | filecheck %s
// RUN: plait-opt %s -p fuse-form-groups,fuse-contraction-chains --split-input-file --remarks 2>&1 | filecheck %s --check-prefix REMARK

// A product of products: a row of the first is kept while the second reads all of it.

// CHECK-LABEL: func.func @two_products(
// CHECK-NEXT:    %[[R:.*]] = fuse.group "sum_0+1" (
// CHECK:           %[[M:.*]] = lazy.reduce sum
// CHECK-NEXT:      %[[K:.*]] = fuse.keep %[[M]] : tensor<64x16xf32>
// CHECK-NEXT:      lazy.reshape %[[K]]
// CHECK:           lazy.reduce sum
// CHECK:         func.return %[[R]]
// REMARK: remark: passed: [fuse.chain-merged] made 'sum_0' and 'sum_1' one kernel, groups: sum_0 -> sum_1, kept: 1, saved: 8192
func.func @two_products(%x: tensor<64x32xf32>, %y: tensor<32x16xf32>, %z: tensor<16x8xf32>)
    -> tensor<64x8xf32> {
  %0 = lazy.reshape %x : tensor<64x32xf32> -> tensor<64x32x1xf32>
  %1 = lazy.expand %0 : tensor<64x32x1xf32> -> tensor<64x32x16xf32>
  %2 = lazy.reshape %y : tensor<32x16xf32> -> tensor<1x32x16xf32>
  %3 = lazy.expand %2 : tensor<1x32x16xf32> -> tensor<64x32x16xf32>
  %4 = lazy.mul %1, %3 : tensor<64x32x16xf32>
  %5 = lazy.reduce sum %4 axes = [1] : tensor<64x32x16xf32> -> tensor<64x16xf32>
  %6 = lazy.reshape %5 : tensor<64x16xf32> -> tensor<64x16x1xf32>
  %7 = lazy.expand %6 : tensor<64x16x1xf32> -> tensor<64x16x8xf32>
  %8 = lazy.reshape %z : tensor<16x8xf32> -> tensor<1x16x8xf32>
  %9 = lazy.expand %8 : tensor<1x16x8xf32> -> tensor<64x16x8xf32>
  %10 = lazy.mul %7, %9 : tensor<64x16x8xf32>
  %11 = lazy.reduce sum %10 axes = [1] : tensor<64x16x8xf32> -> tensor<64x8xf32>
  func.return %11 : tensor<64x8xf32>
}

// -----

// Every sum is needed once: it is computed where the maximum needs it, and nothing is kept.

// CHECK-LABEL: func.func @reduce_of_reduce(
// CHECK-NEXT:    %[[R:.*]] = fuse.group "sum_0+1" (
// CHECK-NOT:       fuse.keep
// CHECK:         func.return %[[R]]
// REMARK: [fuse.chain-merged] made 'sum_0' and 'max_1' one kernel, groups: sum_0 -> max_1, kept: 0, saved: 8192
func.func @reduce_of_reduce(%x: tensor<64x16x8xf32>) -> tensor<64xf32> {
  %0 = lazy.reduce sum %x axes = [2] : tensor<64x16x8xf32> -> tensor<64x16xf32>
  %1 = lazy.reduce max %0 axes = [1] : tensor<64x16xf32> -> tensor<64xf32>
  func.return %1 : tensor<64xf32>
}

// -----

// Sums along both axes of a product have no rows in common with it: either would need all of it.

// CHECK-LABEL: func.func @no_rows(
// CHECK:         fuse.group "sum_0"
// CHECK:         fuse.group "sum_1"
// REMARK: missed: [fuse.no-rows] 'sum_0' and 'sum_1' stay two kernels
func.func @no_rows(%x: tensor<64x64x64xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>) {
  %0 = lazy.reduce sum %x axes = [2] : tensor<64x64x64xf32> -> tensor<64x64xf32>
  %1 = lazy.reshape %0 : tensor<64x64xf32> -> tensor<64x64x1xf32>
  %2 = lazy.expand %1 : tensor<64x64x1xf32> -> tensor<64x64x64xf32>
  %3 = lazy.reshape %0 : tensor<64x64xf32> -> tensor<1x64x64xf32>
  %4 = lazy.expand %3 : tensor<1x64x64xf32> -> tensor<64x64x64xf32>
  %5 = lazy.permute %4 permutation = [2, 1, 0] : tensor<64x64x64xf32> -> tensor<64x64x64xf32>
  %6 = lazy.mul %2, %5 : tensor<64x64x64xf32>
  %7 = lazy.reduce sum %6 axes = [1] : tensor<64x64x64xf32> -> tensor<64x64xf32>
  func.return %7, %0 : tensor<64x64xf32>, tensor<64x64xf32>
}

// -----

// A row of 64 KB does not stay on chip.

// CHECK-LABEL: func.func @long_row(
// CHECK:         fuse.group "sum_0"
// CHECK:         fuse.group "sum_1"
// REMARK: missed: [fuse.row-too-long] 'sum_0' and 'sum_1' stay two kernels: a row of what passes between the groups does not stay on chip, groups: sum_0 -> sum_1, bytes: 65536, limit: 40960
func.func @long_row(%x: tensor<64x16384x2xf32>, %y: tensor<16384x2xf32>) -> tensor<64x2xf32> {
  %0 = lazy.reduce sum %x axes = [2] : tensor<64x16384x2xf32> -> tensor<64x16384xf32>
  %1 = lazy.reshape %0 : tensor<64x16384xf32> -> tensor<64x16384x1xf32>
  %2 = lazy.expand %1 : tensor<64x16384x1xf32> -> tensor<64x16384x2xf32>
  %3 = lazy.reshape %y : tensor<16384x2xf32> -> tensor<1x16384x2xf32>
  %4 = lazy.expand %3 : tensor<1x16384x2xf32> -> tensor<64x16384x2xf32>
  %5 = lazy.mul %2, %4 : tensor<64x16384x2xf32>
  %6 = lazy.reduce sum %5 axes = [1] : tensor<64x16384x2xf32> -> tensor<64x2xf32>
  func.return %6 : tensor<64x2xf32>
}

// -----

// Two products read one weight, each a column of it for a column of what they store: the column is
// kept, and the weight is read once.

// CHECK-LABEL: func.func @both_gradients(
// CHECK-NEXT:    %{{.*}}, %{{.*}} = fuse.group "sum_0+1" (
// CHECK-NEXT:      %{{.*}} = fuse.keep %{{.*}} : tensor<80x96xf32>
// CHECK:         func.return
// REMARK: passed: [fuse.chain-merged] made 'sum_0' and 'sum_1' one kernel, groups: sum_0 -> sum_1, kept: 1
func.func @both_gradients(%g: tensor<8x80xf32>, %w: tensor<80x96xf32>, %x: tensor<8x96xf32>)
    -> (tensor<8x96xf32>, tensor<80x96xf32>) {
  %0 = lazy.reshape %g : tensor<8x80xf32> -> tensor<8x80x1xf32>
  %1 = lazy.expand %0 : tensor<8x80x1xf32> -> tensor<8x80x96xf32>
  %2 = lazy.reshape %w : tensor<80x96xf32> -> tensor<1x80x96xf32>
  %3 = lazy.expand %2 : tensor<1x80x96xf32> -> tensor<8x80x96xf32>
  %4 = lazy.mul %1, %3 : tensor<8x80x96xf32>
  %5 = lazy.reduce sum %4 axes = [1] : tensor<8x80x96xf32> -> tensor<8x96xf32>
  %6 = lazy.reshape %x : tensor<8x96xf32> -> tensor<8x1x96xf32>
  %7 = lazy.expand %6 : tensor<8x1x96xf32> -> tensor<8x80x96xf32>
  %8 = lazy.mul %1, %7 : tensor<8x80x96xf32>
  %9 = lazy.reduce sum %8 axes = [0] : tensor<8x80x96xf32> -> tensor<80x96xf32>
  %10 = lazy.sub %w, %9 : tensor<80x96xf32>
  func.return %5, %10 : tensor<8x96xf32>, tensor<80x96xf32>
}
