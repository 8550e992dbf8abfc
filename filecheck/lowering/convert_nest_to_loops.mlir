// RUN: plait-opt %s -p convert-nest-to-loops --split-input-file | filecheck %s

// A contiguous elementwise kernel becomes one axis of vectors, in units of many vectors.

// CHECK-LABEL: func.func @double(
// CHECK-SAME:    {plait.extent = 1 : index
// CHECK:         scf.for %{{.*}} = %{{.*}} to %{{.*}} step %{{.*}} {
// CHECK:           scf.for
// CHECK:             scf.for
// CHECK:               memref.load %{{.*}}[%{{.*}}] : memref<256xf32>
// CHECK:               memref.store %{{.*}}, %{{.*}}[%{{.*}}] : memref<256xf32>
// CHECK:             } {plait.lanes = 16 : index}
// CHECK-LABEL: func.func @main(
// CHECK:         %[[ZERO:.*]] = arith.constant 0 : index
// CHECK:         %[[END:.*]] = arith.constant 1 : index
// CHECK:         func.call @double(%{{.*}}, %{{.*}}, %[[ZERO]], %[[END]])
nest.kernel @double(%x: memref<8x32xf32>, %y: memref<8x32xf32>) axes [%i = 8, %j = 32] {
  %v = nest.load %x[(d0, d1) -> (d0, d1)](%i, %j) : memref<8x32xf32>
  %r = arith.addf %v, %v : f32
  nest.store %r, %y[(d0, d1) -> (d0, d1)](%i, %j) : memref<8x32xf32>
}
func.func @main(%x: memref<8x32xf32>) -> memref<8x32xf32> {
  %y = memref.alloc() : memref<8x32xf32>
  nest.launch @double(%x, %y) : memref<8x32xf32>, memref<8x32xf32>
  func.return %y : memref<8x32xf32>
}

// -----

// Rows are reduced in vectors of partial sums.

// CHECK-LABEL: func.func @row_sum(
// CHECK:         scf.for %{{.*}} iter_args(%{{.*}} = %{{.*}}) -> (f32) {
// CHECK:           arith.addf %{{.*}}, %{{.*}} fastmath<reassoc,contract> : f32
// CHECK:         } {plait.lanes = 16 : index, plait.width = 16 : index, plait.reduce = ["sum"]}
nest.kernel @row_sum(%x: memref<8x64xf32>, %y: memref<8xf32>) axes [%i = 8] {
  %s = nest.reduce [sum] over [%j = 64] {
    %v = nest.load %x[(d0, d1) -> (d0, d1)](%i, %j) : memref<8x64xf32>
    nest.yield %v : f32
  } : f32
  nest.store %s, %y[(d0) -> (d0)](%i) : memref<8xf32>
}

// -----

// Columns are reduced side by side: one accumulator per lane, no combination at the end.

// CHECK-LABEL: func.func @column_sum(
// CHECK:         scf.for
// CHECK:           scf.for %{{.*}} iter_args(%{{.*}} = %{{.*}}) -> (f32) {
// CHECK-NOT:         plait.reduce
// CHECK:         } {plait.lanes = 16 : index}
nest.kernel @column_sum(%x: memref<8x64xf32>, %y: memref<64xf32>) axes [%j = 64] {
  %s = nest.reduce [sum] over [%i = 8] {
    %v = nest.load %x[(d0, d1) -> (d0, d1)](%i, %j) : memref<8x64xf32>
    nest.yield %v : f32
  } : f32
  nest.store %s, %y[(d0) -> (d0)](%j) : memref<64xf32>
}

// -----

// A matrix product keeps a tile of accumulators: rows jammed, columns in lanes.

// CHECK-LABEL: func.func @product(
// CHECK:         scf.for
// CHECK:           scf.for
// CHECK:             scf.for %{{.*}} iter_args(
// CHECK:               arith.mulf %{{.*}}, %{{.*}} fastmath<contract> : f32
// CHECK:           } {plait.lanes = 16 : index}
// CHECK:         } {plait.jam = 4 : index}
nest.kernel @product(%a: memref<8x32xf32>, %b: memref<32x64xf32>, %c: memref<8x64xf32>)
    axes [%i = 8, %j = 64] {
  %s = nest.reduce [sum] over [%k = 32] {
    %u = nest.load %a[(d0, d1) -> (d0, d1)](%i, %k) : memref<8x32xf32>
    %v = nest.load %b[(d0, d1) -> (d0, d1)](%k, %j) : memref<32x64xf32>
    %p = arith.mulf %u, %v : f32
    nest.yield %p : f32
  } : f32
  nest.store %s, %c[(d0, d1) -> (d0, d1)](%i, %j) : memref<8x64xf32>
}

// -----

// A mask that always holds disappears; one that never holds leaves the zero.

// CHECK-LABEL: func.func @masks(
// CHECK-NOT:     scf.if
// CHECK:         memref.load
// CHECK-NOT:     memref.load
// CHECK:         memref.store
nest.kernel @masks(%x: memref<8xf32>, %y: memref<8xf32>) axes [%i = 8] {
  %u = nest.load %x[(d0) -> (d0)](%i) where (d0) : (7 - d0 >= 0) : memref<8xf32>
  %v = nest.load %x[(d0) -> (d0)](%i) where (d0) : (d0 - 8 >= 0) : memref<8xf32>
  %r = arith.addf %u, %v : f32
  nest.store %r, %y[(d0) -> (d0)](%i) : memref<8xf32>
}

// -----

// What a point keeps is on the stack of the thread that runs it.

// CHECK-LABEL: func.func @kept(
// CHECK:         %{{.*}} = memref.alloca() : memref<8xf32>
nest.kernel @kept(%x: memref<4x8xf32>, %y: memref<4x8xf32>) axes [%i = 4] {
  %row = nest.local : memref<8xf32>
  nest.reduce [] over [%j = 8] {
    %v = nest.load %x[(d0, d1) -> (d0, d1)](%i, %j) : memref<4x8xf32>
    %e = math.exp %v : f32
    nest.store %e, %row[(d0) -> (d0)](%j) : memref<8xf32>
  }
  nest.reduce [] over [%k = 8] {
    %w = nest.load %row[(d0) -> (7 - d0)](%k) : memref<8xf32>
    nest.store %w, %y[(d0, d1) -> (d0, d1)](%i, %k) : memref<4x8xf32>
  }
}
