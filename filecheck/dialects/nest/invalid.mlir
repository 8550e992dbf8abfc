// RUN: plait-opt %s --split-input-file --verify-diagnostics

nest.kernel @rank(%x: memref<4x4xf32>) axes [%i = 4] {
  // expected-error@below {{expected a map to the 2 axes of memref<4x4xf32>}}
  %v = nest.load %x[(d0) -> (d0)](%i) : memref<4x4xf32>
}

// -----

nest.kernel @dimensions(%x: memref<4xf32>) axes [%i = 4] {
  // expected-error@below {{expected a map of 1 dimensions, one per index}}
  %v = nest.load %x[(d0, d1) -> (d0)](%i) : memref<4xf32>
}

// -----

nest.kernel @set(%x: memref<4xf32>) axes [%i = 4] {
  // expected-error@below {{expected a set of 1 dimensions, one per index}}
  %v = nest.load %x[(d0) -> (d0)](%i) where (d0, d1) : (d0 >= 0) : memref<4xf32>
}

// -----

nest.kernel @values(%x: memref<4xf32>) axes [] {
  // expected-error@below {{expected the body to yield and the operation to return 1 values of the same types}}
  %s = nest.reduce [sum] over [%j = 4] {
    %v = nest.load %x[(d0) -> (d0)](%j) : memref<4xf32>
    nest.yield %v, %v : f32, f32
  } : f32
}

// -----

nest.kernel @carried(%x: memref<4xf32>) axes [] {
  %zero = arith.constant 0.0 : f32
  // expected-error@below {{expected yielded values of the types that are carried (f32), found ()}}
  %s = nest.sequential over [%j = 4] carrying [%r = %zero : f32] {
    nest.yield
  }
}

// -----

// expected-error@below {{the schedule splits axis 'k', which the kernel does not have: its axes are i}}
nest.kernel @axis(%x: memref<4xf32>) axes [%i = 4] attributes {schedule = #nest.schedule<"cpu", serial, [k = 4 : grid]>} {
}

// -----

// expected-error@below {{the schedule's pieces cover 3 of the 4 points of axis 'i'}}
nest.kernel @covered(%x: memref<4xf32>) axes [%i = 4] attributes {schedule = #nest.schedule<"cpu", serial, [i = 3 : grid]>} {
}

// -----

nest.kernel @index(%x: memref<4xf32>) axes [%i = 4] {
  // expected-error@below {{expected a map from 1 dimensions to one result}}
  %v = nest.index (d0) -> (d0, d0) (%i)
}
