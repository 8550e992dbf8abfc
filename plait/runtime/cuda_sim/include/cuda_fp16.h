// Half precision for the simulator: IEEE binary16, rounded to nearest even.
#pragma once
#include "plait_cuda_sim.h"

struct __half {
  uint16_t bits;
  __half() = default;
  __half(int value);
};

PLAIT_QUIET static inline float __half2float(__half h)
{
  uint32_t sign = (uint32_t)(h.bits & 0x8000u) << 16, exponent = (h.bits >> 10) & 31u;
  uint32_t fraction = h.bits & 1023u;
  if (exponent == 0) return plait_bits<float>(sign) + (sign ? -1.0f : 1.0f) * (float)fraction * 0x1p-24f;
  if (exponent == 31) return plait_bits<float>(sign | 0x7f800000u | fraction << 13);
  return plait_bits<float>(sign | (exponent + 112u) << 23 | fraction << 13);
}
PLAIT_QUIET static inline __half __double2half(double x)
{
  __half h;
  uint16_t sign = signbit(x) ? 0x8000u : 0;
  double magnitude = fabs(x);
  if (x != x) h.bits = sign | 0x7e00u;
  else if (magnitude >= 65520.0) h.bits = sign | 0x7c00u;
  else if (magnitude < 0x1p-14) h.bits = sign | (uint16_t)nearbyint(magnitude * 0x1p24);
  else {
    int exponent;
    frexp(magnitude, &exponent);
    double steps = nearbyint(ldexp(magnitude, 11 - exponent));
    h.bits = sign | (uint16_t)(((exponent + 14) << 10) + (int)steps - 1024);
  }
  return h;
}
PLAIT_QUIET static inline __half __float2half_rn(float x) { return __double2half((double)x); }
PLAIT_QUIET inline __half::__half(int value) { bits = __double2half((double)value).bits; }
static inline short __half_as_short(__half h) { return (short)h.bits; }
static inline __half __short_as_half(short bits)
{
  __half h;
  h.bits = (uint16_t)bits;
  return h;
}
