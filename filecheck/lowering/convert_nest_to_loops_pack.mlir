// RUN: plait-opt %s -p convert-nest-to-loops --split-input-file | filecheck %s

// The right factor of a matrix product, whose rows are far apart, is packed in panels of 16
// columns; the product reads it line by line, 4 rows at a time.

// CHECK-LABEL: func.func @product_pack0(
// CHECK-SAME:    %{{.*}}: memref<4096xf32>
// CHECK:         memref.store %{{.*}}, %{{.*}}[%{{.*}}] : memref<4096xf32>
// CHECK-LABEL: func.func @product(
// CHECK:         scf.for %{{.*}} = %{{.*}} to %{{.*}} step %{{.*}} {
// CHECK:           scf.for %{{.*}} = %{{.*}} to %{{.*}} step %{{.*}} {
// CHECK:             %[[SUM:.*]] = scf.for %{{.*}} iter_args(
// CHECK-NEXT:          arith.muli
// CHECK:               arith.mulf %{{.*}}, %{{.*}} fastmath<contract> : f32
// CHECK-NEXT:          arith.addf %{{.*}}, %{{.*}} fastmath<reassoc,contract> : f32
// CHECK:             memref.store
// CHECK:           } {plait.lanes = 16 : index}
// CHECK:         } {plait.jam = 4 : index}
// CHECK-LABEL: func.func @main(
// CHECK:         %[[PANELS:.*]] = memref.alloc() : memref<4096xf32>
// CHECK:         func.call @product_pack0(%{{.*}}, %{{.*}}, %{{.*}}, %[[PANELS]],
// CHECK:         func.call @product(%{{.*}}, %{{.*}}, %{{.*}}, %[[PANELS]],
nest.kernel @product(%a: memref<32x32xf32>, %b: memref<32x128xf32>, %y: memref<32x128xf32>) axes [%i = 32, %j = 128] {
  %s = nest.reduce [sum] over [%k = 32] {
    %x = nest.load %a[(d0, d1) -> (d0, d1)](%i, %k) : memref<32x32xf32>
    %z = nest.load %b[(d0, d1) -> (d0, d1)](%k, %j) : memref<32x128xf32>
    %p = arith.mulf %x, %z : f32
    nest.yield %p : f32
  } : f32
  nest.store %s, %y[(d0, d1) -> (d0, d1)](%i, %j) : memref<32x128xf32>
}
func.func @main(%a: memref<32x32xf32>, %b: memref<32x128xf32>) -> memref<32x128xf32> {
  %y = memref.alloc() : memref<32x128xf32>
  nest.launch @product(%a, %b, %y) : memref<32x32xf32>, memref<32x128xf32>, memref<32x128xf32>
  func.return %y : memref<32x128xf32>
}

// -----

// The padded image of a convolution is written out once, 66 elements a row for 64: neither its 3
// windows, nor a mask in the inner loop.

// CHECK-LABEL: func.func @window_pack0(
// CHECK-SAME:    %{{.*}}: memref<528xf32>
// CHECK:         scf.if
// CHECK:         memref.store %{{.*}}, %{{.*}}[%{{.*}}] : memref<528xf32>
// CHECK-LABEL: func.func @window(
// CHECK-NOT:     scf.if
// CHECK:         memref.load %{{.*}}[%{{.*}}] : memref<528xf32>
// CHECK-LABEL: func.func @main(
nest.kernel @window(%x: memref<8x64xf32>, %w: memref<48x8x3xf32>, %y: memref<48x64xf32>) axes [%o = 48, %p = 64] {
  %s = nest.reduce [sum] over [%c = 8, %r = 3] {
    %a = nest.load %x[(d0, d1, d2) -> (d1, d0 + d2 - 1)](%p, %c, %r) where (d0, d1, d2) : (d0 + d2 - 1 >= 0, 64 - d0 - d2 >= 0) : memref<8x64xf32>
    %b = nest.load %w[(d0, d1, d2) -> (d0, d1, d2)](%o, %c, %r) : memref<48x8x3xf32>
    %m = arith.mulf %a, %b : f32
    nest.yield %m : f32
  } : f32
  nest.store %s, %y[(d0, d1) -> (d0, d1)](%o, %p) : memref<48x64xf32>
}
func.func @main(%x: memref<8x64xf32>, %w: memref<48x8x3xf32>) -> memref<48x64xf32> {
  %y = memref.alloc() : memref<48x64xf32>
  nest.launch @window(%x, %w, %y) : memref<8x64xf32>, memref<48x8x3xf32>, memref<48x64xf32>
  func.return %y : memref<48x64xf32>
}
