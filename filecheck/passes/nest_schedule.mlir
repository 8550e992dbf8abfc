// RUN: plait-opt %s --nest-schedule=target=cuda:sm_80 | filecheck %s
// RUN: plait-opt %s --nest-schedule=target=cuda:sm_80 --nest-schedule=target=cpu | filecheck %s
// RUN: plait-opt %s --nest-schedule=target=cpu | filecheck %s --check-prefix=CPU

// Many points: a thread each.
// CHECK-LABEL: nest.kernel @copy(
// CHECK-SAME:    schedule = #nest.schedule<"cuda:sm_80", serial, [i = 4 : grid, i = 256 : thread]>
// CPU-LABEL: nest.kernel @copy(
// CPU-SAME:    schedule = #nest.schedule<"cpu", serial, [i = 1000 : thread]>
nest.kernel @copy(%x: memref<1000xf32>, %y: memref<1000xf32>) axes [%i = 1000] {
  %v = nest.load %x[(d0) -> (d0)](%i) : memref<1000xf32>
  nest.store %v, %y[(d0) -> (d0)](%i) : memref<1000xf32>
}

// Few points and a long reduction: a block each.
// CHECK-LABEL: nest.kernel @rows(
// CHECK-SAME:    schedule = #nest.schedule<"cuda:sm_80", block, [i = 8 : grid, j = 256 : thread, j = 2 : serial]>
nest.kernel @rows(%x: memref<8x512xf32>, %y: memref<8xf32>) axes [%i = 8] {
  %s = nest.reduce [sum] over [%j = 512] {
    %v = nest.load %x[(d0, d1) -> (d0, d1)](%i, %j) : memref<8x512xf32>
    nest.yield %v : f32
  } : f32
  nest.store %s, %y[(d0) -> (d0)](%i) : memref<8xf32>
}

// A loop in order is not shared among threads.
// CHECK-LABEL: nest.kernel @ordered(
// CHECK-SAME:    serial
nest.kernel @ordered(%x: memref<512xf32>) axes [] {
  nest.sequential over [%j = 512] {
  }
}

// A schedule that is there stays.
// CHECK-LABEL: nest.kernel @mine(
// CHECK-SAME:    schedule = #nest.schedule<"cuda:sm_90", serial, [i = 8 : thread]>
nest.kernel @mine(%x: memref<8xf32>) axes [%i = 8] attributes {schedule = #nest.schedule<"cuda:sm_90", serial, [i = 8 : thread]>} {
}

// One point and a large reduction: cut over blocks.
// CHECK-LABEL: nest.kernel @total(
// CHECK-SAME:    schedule = #nest.schedule<"cuda:sm_80", block, [i = 128 : grid, i = 16 : serial, j = 256 : thread]>
nest.kernel @total(%x: memref<2048x256xf32>, %y: memref<f32>) axes [] {
  %s = nest.reduce [sum] over [%i = 2048, %j = 256] {
    %v = nest.load %x[(d0, d1) -> (d0, d1)](%i, %j) : memref<2048x256xf32>
    nest.yield %v : f32
  } : f32
  nest.store %s, %y[() -> ()]() : memref<f32>
}
