// CUDA C on the host: what a kernel's text needs in order to compile as C++, unchanged.
// Threads are fibers of the runtime (sim.cpp), which switches between them at barriers and shuffles.
#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>

#include <utility>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __restrict__
#define __constant__ static
#define __shared__ static __attribute__((section("plait_shared")))
#define PLAIT_QUIET __attribute__((no_sanitize("thread")))

struct plait_dim3 {
  unsigned x, y, z;
};

extern "C" {
extern plait_dim3 threadIdx, blockIdx, blockDim, gridDim;
void plait_sim_barrier(int line);
void plait_sim_warp(int line);
void plait_sim_warp_barrier(int line);
void *plait_sim_lane(int lane);
int plait_sim_lane_id(void);
void plait_sim_fence(void);
void plait_sim_atomic(void *address, int64_t size);
}

#define __syncthreads() plait_sim_barrier(__LINE__)
#define __syncwarp(...) plait_sim_warp_barrier(__LINE__)
#define __threadfence() plait_sim_fence()
static const int warpSize = 32;

template <typename T> PLAIT_QUIET static inline T atomicAdd(T *address, T value)
{
  plait_sim_atomic(address, sizeof(T));
  T old = *address;
  *address = old + value;
  return old;
}
template <typename T> PLAIT_QUIET static inline T atomicExch(T *address, T value)
{
  plait_sim_atomic(address, sizeof(T));
  T old = *address;
  *address = value;
  return old;
}

// A shuffle: every lane of the warp offers a value, then reads another lane's.
template <typename T> PLAIT_QUIET static inline T plait_shuffle(T value, int from, int line)
{
  memcpy(plait_sim_lane(plait_sim_lane_id()), &value, sizeof(T));
  plait_sim_warp(line);
  T result;
  memcpy(&result, plait_sim_lane(from), sizeof(T));
  plait_sim_warp(-line);
  return result;
}
PLAIT_QUIET static inline int plait_within(int target, int width)
{
  int lane = plait_sim_lane_id();
  return target / width == lane / width && target >= 0 ? target : lane;
}
#define PLAIT_WIDTH(a, b, c, width, ...) width
#define __shfl_down_sync(mask, value, delta, ...)                                                  \
  plait_shuffle((value), plait_within(plait_sim_lane_id() + (int)(delta), 32), __LINE__)
#define __shfl_up_sync(mask, value, delta, ...)                                                    \
  plait_shuffle((value), plait_within(plait_sim_lane_id() - (int)(delta), 32), __LINE__)
#define __shfl_xor_sync(mask, value, bits, ...)                                                    \
  plait_shuffle((value), plait_sim_lane_id() ^ (int)(bits), __LINE__)
#define __shfl_sync(mask, value, lane, ...) plait_shuffle((value), (int)(lane) & 31, __LINE__)

template <typename To, typename From> PLAIT_QUIET static inline To plait_bits(From from)
{
  static_assert(sizeof(To) == sizeof(From), "bits of another width");
  To to;
  memcpy(&to, &from, sizeof(To));
  return to;
}
static inline int __float_as_int(float x) { return plait_bits<int>(x); }
static inline float __int_as_float(int x) { return plait_bits<float>(x); }
static inline long long __double_as_longlong(double x) { return plait_bits<long long>(x); }
static inline double __longlong_as_double(long long x) { return plait_bits<double>(x); }

// Calls a kernel with its pointers from an array.
template <typename... A, size_t... N>
PLAIT_QUIET static inline void plait_apply(void (*kernel)(A...), void **a, std::index_sequence<N...>)
{
  kernel((A)a[N]...);
}
template <typename... A> PLAIT_QUIET static inline void plait_apply(void (*kernel)(A...), void **a)
{
  plait_apply(kernel, a, std::index_sequence_for<A...>{});
}
