// RUN: plait-opt %s --convert-nest-to-gpu | filecheck %s
// RUN: plait-opt %s --convert-nest-to-gpu -t cuda | filecheck %s --check-prefix=CUDA

// CHECK:         "memref.global"() <{sym_name = "plait_tickets", type = memref<1xi32>, initial_value = dense<0> : tensor<1xi32>
// CHECK:         "gpu.module"() <{sym_name = "kernels"}>
// CHECK:         "memref.global"() <{sym_name = "rows_shared0", type = memref<8xf32, 3 : i64>
// CHECK:         "gpu.func"()
// CHECK:           "gpu.block_id"
// CHECK:           "gpu.thread_id"
// CHECK:           scf.for %{{.*}} = %{{.*}} to %{{.*}} step %{{.*}} iter_args(
// CHECK:           "gpu.shuffle"({{.*}}) <{mode = #gpu<shuffle_mode down>}>
// CHECK:           scf.if
// CHECK:           "gpu.barrier"
// CHECK:           "gpu.return"
// CHECK:         sym_name = "rows", gpu.kernel, plait.grid = array<i64: 8, 1, 1>, plait.block = array<i64: 256, 1, 1>
// CHECK:         sym_name = "masked", gpu.kernel, plait.grid = array<i64: 1, 1, 1>, plait.block = array<i64: 256, 1, 1>
// CHECK:           llvm.call_intrinsic "llvm.nvvm.membar.gl"
// CHECK:         sym_name = "total", gpu.kernel, plait.grid = array<i64: 4, 1, 1>, plait.block = array<i64: 256, 1, 1>
// CHECK-LABEL: func.func @main(
// CHECK:         "gpu.launch_func"({{.*}}) <{kernel = @kernels::@rows
// CHECK:         %[[PARTIAL:.*]] = memref.alloc() : memref<4xf32>
// CHECK:         %[[ALL:.*]] = memref.get_global @plait_tickets : memref<1xi32>
// CHECK:         %[[TICKETS:.*]] = memref.reinterpret_cast %[[ALL]]
// CHECK:         "gpu.launch_func"({{.*}}%[[PARTIAL]], %[[TICKETS]]) <{kernel = @kernels::@total

// CUDA-LABEL: // rows
// CUDA-NEXT:  //   space: i = 8
// CUDA-NEXT:  //   schedule: #nest.schedule<"cuda:sm_80", block,
// CUDA-NEXT:  //   launch: 8 blocks of 256 threads
// CUDA:       extern "C" __global__ void __launch_bounds__(256)
// CUDA-NEXT:  rows(const float* __restrict__ x,
// CUDA-NEXT:      float* __restrict__ y)
// CUDA:         float acc = 0.0f;
// CUDA-NEXT:    for (int {{.*}} = thread; {{.*}} < 512; {{.*}} += 256) {
// CUDA:         __shfl_down_sync(0xffffffffu, acc, 16);
// CUDA:         __shared__ float rows_shared0[8];
// CUDA-NEXT:    if ((thread % 32) == 0) {
// CUDA-NEXT:      rows_shared0[warp] =
// CUDA:         __syncthreads();
// CUDA:         if (thread == 0) {
// CUDA-NEXT:      y[block] =
nest.kernel @rows(%x: memref<8x512xf32>, %y: memref<8xf32>) axes [%i = 8] {
  %s = nest.reduce [sum] over [%j = 512] {
    %v = nest.load %x[(d0, d1) -> (d0, d1)](%i, %j) : memref<8x512xf32>
    nest.yield %v : f32
  } : f32
  nest.store %s, %y[(d0) -> (d0)](%i) : memref<8xf32>
}

// CUDA-LABEL: // masked
// CUDA:       if ({{.*}} < 10) {
// CUDA:         ? x[{{.*}}] : 0.0f;
nest.kernel @masked(%x: memref<8xf32>, %y: memref<10xf32>) axes [%i = 10] {
  %v = nest.load %x[(d0) -> (d0 - 1)](%i) where (d0) : (d0 - 1 >= 0, 8 - d0 >= 0) : memref<8xf32>
  nest.store %v, %y[(d0) -> (d0)](%i) : memref<10xf32>
}

// A reduction with a grid piece: partial results, then their combination by the last block.
// CUDA-LABEL: // total
// CUDA-NEXT:  //   space:
// CUDA:       //   launch: 4 blocks of 256 threads
// CUDA:       total(const float* __restrict__ x,
// CUDA-NEXT:      float* __restrict__ y,
// CUDA-NEXT:      float* __restrict__ partial,
// CUDA-NEXT:      int* __restrict__ tickets)
// CUDA:         for (int [[AT:.*]] = thread; [[AT]] < 1024; [[AT]] += 256) {
// CUDA-NEXT:      {{.*}} = x[(block * 1024) + [[AT]]];
// CUDA:           partial[block] =
// CUDA:           __threadfence();
// CUDA-NEXT:      int [[TICKET:.*]] = atomicAdd(&tickets[0], 1);
// CUDA-NEXT:      __threadfence();
// CUDA:         == 3) {
// CUDA-NEXT:      if (thread == 0) {
// CUDA-NEXT:        atomicExch(&tickets[0], 0);
// CUDA:           = partial[
// CUDA:           __shfl_sync(0xffffffffu, {{.*}}, 0);
// CUDA:           y[0] =
nest.kernel @total(%x: memref<16x256xf32>, %y: memref<f32>) axes [] attributes {schedule = #nest.schedule<"cuda:sm_80", block, [i = 4 : grid, i = 4 : serial]>} {
  %s = nest.reduce [sum] over [%i = 16, %j = 256] {
    %v = nest.load %x[(d0, d1) -> (d0, d1)](%i, %j) : memref<16x256xf32>
    nest.yield %v : f32
  } : f32
  nest.store %s, %y[() -> ()]() : memref<f32>
}

func.func @main(%x: memref<8x512xf32>, %z: memref<16x256xf32>) -> (memref<8xf32>, memref<f32>) {
  %y = memref.alloc() : memref<8xf32>
  nest.launch @rows(%x, %y) : memref<8x512xf32>, memref<8xf32>
  %t = memref.alloc() : memref<f32>
  nest.launch @total(%z, %t) : memref<16x256xf32>, memref<f32>
  return %y, %t : memref<8xf32>, memref<f32>
}
