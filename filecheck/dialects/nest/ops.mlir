// RUN: plait-opt %s | filecheck %s
// RUN: plait-opt %s --mlir-print-op-generic | plait-opt | filecheck %s

// CHECK-LABEL: nest.kernel @softmax(%x: memref<16x64xf32>, %y: memref<16x64xf32>) axes [%i = 16]
// CHECK-SAME:    schedule = #nest.schedule<"cuda:sm_80", block, [i = 16 : grid, j = 64 : thread]>, source = "softmax"
// CHECK-NEXT:    %m = nest.reduce [max] over [%j = 64] {
// CHECK-NEXT:      %v = nest.load %x[(d0, d1) -> (d0, d1)](%i, %j) : memref<16x64xf32>
// CHECK-NEXT:      nest.yield %v : f32
// CHECK-NEXT:    } : f32
// CHECK-NEXT:    nest.reduce [] over [%j_1 = 64 as j] {
// CHECK-NEXT:      %w = nest.load %x[(d0, d1) -> (d0, (d1 + -1))](%i, %j_1) where (d0, d1) : ((d1 + -1) >= 0) : memref<16x64xf32>
// CHECK-NEXT:      %s = arith.subf %w, %m : f32
// CHECK-NEXT:      nest.store %s, %y[(d0, d1) -> (d0, d1)](%i, %j_1) : memref<16x64xf32>
// CHECK-NEXT:    }
nest.kernel @softmax(%x: memref<16x64xf32>, %y: memref<16x64xf32>) axes [%i = 16] attributes {schedule = #nest.schedule<"cuda:sm_80", block, [i = 16 : grid, j = 64 : thread]>, source = "softmax"} {
  %m = nest.reduce [max] over [%j = 64] {
    %v = nest.load %x[(d0, d1) -> (d0, d1)](%i, %j) : memref<16x64xf32>
    nest.yield %v : f32
  } : f32
  nest.reduce [] over [%j = 64] {
    %w = nest.load %x[(d0, d1) -> (d0, d1 - 1)](%i, %j) where (d0, d1) : (d1 - 1 >= 0) : memref<16x64xf32>
    %s = arith.subf %w, %m : f32
    nest.store %s, %y[(d0, d1) -> (d0, d1)](%i, %j) : memref<16x64xf32>
  }
}

// CHECK-LABEL: nest.kernel @scan(
// CHECK:         %zero = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:    %last = nest.sequential over [%j = 8] carrying [%r = %zero : f32] {
// CHECK-NEXT:      %v = nest.load %x[(d0) -> (d0)](%j) : memref<8xf32>
// CHECK-NEXT:      %n = arith.addf %r, %v : f32
// CHECK-NEXT:      nest.store %n, %y[(d0) -> (d0)](%j) : memref<8xf32>
// CHECK-NEXT:      nest.yield %n : f32
// CHECK-NEXT:    }
nest.kernel @scan(%x: memref<8xf32>, %y: memref<8xf32>) axes [] {
  %zero = arith.constant 0.0 : f32
  %last = nest.sequential over [%j = 8] carrying [%r = %zero : f32] {
    %v = nest.load %x[(d0) -> (d0)](%j) : memref<8xf32>
    %n = arith.addf %r, %v : f32
    nest.store %n, %y[(d0) -> (d0)](%j) : memref<8xf32>
    nest.yield %n : f32
  }
}

// CHECK-LABEL: nest.kernel @argmax(
// CHECK:         %best, %at, %all = nest.reduce [argmax, sum] over [%j = 8] {
// CHECK:           %p = nest.index (d0) -> (((d0 * 2) + 1)) (%j)
// CHECK-NEXT:      %t = nest.test (d0) : ((d0 + -1) >= 0) (%j)
// CHECK:           nest.yield %v, %p, %v : f32, index, f32
// CHECK-NEXT:    } : f32, index, f32
nest.kernel @argmax(%x: memref<8xf32>) axes [] {
  %best, %at, %all = nest.reduce [argmax, sum] over [%j = 8] {
    %v = nest.load %x[(d0) -> (d0)](%j) : memref<8xf32>
    %p = nest.index (d0) -> (d0 * 2 + 1) (%j)
    %t = nest.test (d0) : (d0 - 1 >= 0) (%j)
    nest.yield %v, %p, %v : f32, index, f32
  } : f32, index, f32
}

// CHECK-LABEL: func.func @main(
// CHECK:         nest.launch @scan(%x, %y) : memref<8xf32>, memref<8xf32>
func.func @main(%x: memref<8xf32>) -> memref<8xf32> {
  %y = memref.alloc() : memref<8xf32>
  nest.launch @scan(%x, %y) : memref<8xf32>, memref<8xf32>
  return %y : memref<8xf32>
}

// CHECK-LABEL: nest.kernel @kept(
// CHECK:         %row = nest.local : memref<8xf32>
// CHECK:           nest.store %e, %row[(d0) -> (d0)](%j) : memref<8xf32>
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
