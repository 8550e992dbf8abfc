// RUN: plait-opt %s --convert-nest-to-gpu | filecheck %s
// RUN: plait-opt %s --convert-nest-to-gpu -t cuda | filecheck %s --check-prefix=CUDA

// A block keeps a row in shared memory, and waits before other threads read it.

// CHECK:         "memref.global"() <{sym_name = "kept_row0", type = memref<64xf32, 3 : i64>
// CHECK:           memref.get_global @kept_row0 : memref<64xf32, 3 : i64>
// CHECK:           memref.store
// CHECK:           gpu.barrier
// CUDA:          kept(const float* __restrict__ x,
// CUDA:          __shared__ float kept_row0[64];
// CUDA:            kept_row0[
// CUDA:          __syncthreads();
// CUDA:            = kept_row0[
nest.kernel @kept(%x: memref<4x64xf32>, %y: memref<4x64xf32>) axes [%i = 4] {
  %row = nest.local : memref<64xf32>
  nest.reduce [] over [%j = 64] {
    %v = nest.load %x[(d0, d1) -> (d0, d1)](%i, %j) : memref<4x64xf32>
    %e = math.exp %v : f32
    nest.store %e, %row[(d0) -> (d0)](%j) : memref<64xf32>
  }
  nest.reduce [] over [%k = 64] {
    %w = nest.load %row[(d0) -> (63 - d0)](%k) : memref<64xf32>
    nest.store %w, %y[(d0, d1) -> (d0, d1)](%i, %k) : memref<4x64xf32>
  }
}
