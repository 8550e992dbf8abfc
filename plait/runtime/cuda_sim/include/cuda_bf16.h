// bfloat16 for the simulator: the upper half of a float, rounded to nearest even.
#pragma once
#include "plait_cuda_sim.h"

struct __nv_bfloat16 {
  uint16_t bits;
  __nv_bfloat16() = default;
  __nv_bfloat16(int value);
};

PLAIT_QUIET static inline float __bfloat162float(__nv_bfloat16 b)
{
  return plait_bits<float>((uint32_t)b.bits << 16);
}
PLAIT_QUIET static inline __nv_bfloat16 __float2bfloat16_rn(float x)
{
  __nv_bfloat16 b;
  uint32_t bits = plait_bits<uint32_t>(x);
  if (x != x) b.bits = (uint16_t)(bits >> 16 | 0x40u);
  else b.bits = (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
  return b;
}
PLAIT_QUIET static inline __nv_bfloat16 __double2bfloat16(double x)
{
  // Rounding to odd first keeps the second rounding right.
  float near = (float)x;
  uint32_t bits = plait_bits<uint32_t>(near);
  if (near == near && (double)near != x) {
    if (fabs((double)near) > fabs(x)) bits -= 1;
    bits |= 1u;
  }
  return __float2bfloat16_rn(plait_bits<float>(bits));
}
PLAIT_QUIET inline __nv_bfloat16::__nv_bfloat16(int value) { bits = __float2bfloat16_rn((float)value).bits; }
static inline short __bfloat16_as_short(__nv_bfloat16 b) { return (short)b.bits; }
static inline __nv_bfloat16 __short_as_bfloat16(short bits)
{
  __nv_bfloat16 b;
  b.bits = (uint16_t)bits;
  return b;
}
