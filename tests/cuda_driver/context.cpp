// The device, its contexts, errors, and what tests ask the simulated driver.
#include <cstdlib>
#include <cstring>

#include "state.h"

namespace sim {

State &state()
{
  static State *state = new State;  // never destroyed: destructors of other libraries still call
  return *state;
}

bool faulty(const char *variable, long count)
{
  const char *value = getenv(variable);
  return value && (atol(value) == count || !strcmp(value, "all"));
}

CUresult enter(const char *name, bool needs_context)
{
  State &s = state();
  s.calls[name]++;
  if (!s.initialised) return CUDA_ERROR_NOT_INITIALIZED;
  if (needs_context && s.lost) return s.lost;
  if (needs_context && s.current.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  return CUDA_SUCCESS;
}

}  // namespace sim

using sim::state;

extern "C" {

// How often a function of the driver was called, by its versioned name.
long plait_driver_calls(const char *name) { return state().calls[name]; }
// How many things of a kind are alive: memory, pinned, modules, streams, events, graphs, contexts.
long plait_driver_live(const char *kind)
{
  long count = 0;
  if (!strcmp(kind, "memory") || !strcmp(kind, "pinned")) {
    for (auto &block : state().blocks) count += block.second.host == !strcmp(kind, "pinned");
    return count;
  }
  return state().live[kind];
}

CUresult cuInit(unsigned)
{
  state().calls[__func__]++;
  if (getenv("PLAIT_DRIVER_NO_DEVICE")) return CUDA_ERROR_NO_DEVICE;
  state().initialised = true;
  return CUDA_SUCCESS;
}
CUresult cuDriverGetVersion(int *version)
{
  *version = CUDA_VERSION;
  return CUDA_SUCCESS;
}
CUresult cuGetErrorString(CUresult error, const char **text)
{
  switch (error) {
    case CUDA_SUCCESS: *text = "no error"; break;
    case CUDA_ERROR_INVALID_VALUE: *text = "invalid argument"; break;
    case CUDA_ERROR_OUT_OF_MEMORY: *text = "out of memory"; break;
    case CUDA_ERROR_NOT_INITIALIZED: *text = "initialization error"; break;
    case CUDA_ERROR_NO_DEVICE: *text = "no CUDA-capable device is detected"; break;
    case CUDA_ERROR_INVALID_IMAGE: *text = "device kernel image is invalid"; break;
    case CUDA_ERROR_INVALID_CONTEXT: *text = "invalid device context"; break;
    case CUDA_ERROR_NOT_FOUND: *text = "named symbol not found"; break;
    case CUDA_ERROR_NOT_READY: *text = "device not ready"; break;
    case CUDA_ERROR_ILLEGAL_ADDRESS: *text = "an illegal memory access was encountered"; break;
    case CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES: *text = "too many resources requested for launch"; break;
    case CUDA_ERROR_LAUNCH_FAILED: *text = "unspecified launch failure"; break;
    case CUDA_ERROR_NOT_SUPPORTED: *text = "operation not supported"; break;
    default: *text = "unknown error"; return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count)
{
  *count = 1;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
  if (ordinal) return CUDA_ERROR_INVALID_VALUE;
  *device = 0;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetName(char *name, int length, CUdevice)
{
  strncpy(name, "simulated", length);
  return CUDA_SUCCESS;
}
CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice)
{
  *major = 8, *minor = 0;
  return CUDA_SUCCESS;
}
CUresult cuDeviceTotalMem(size_t *bytes, CUdevice)
{
  *bytes = (size_t)1 << 34;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice)
{
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = 8; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = 0; break;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = 1024; break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = 108; break;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE: *value = 32; break;
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING: *value = 1; break;
    default: *value = 0;
  }
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice)
{
  ENTER_WITHOUT_CONTEXT;
  state().primary.primary = true;
  state().live["contexts"] += !state().primary.retained++;
  *context = &state().primary;
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRelease(CUdevice)
{
  ENTER_WITHOUT_CONTEXT;
  if (!state().primary.retained) return CUDA_ERROR_INVALID_CONTEXT;
  state().live["contexts"] -= !--state().primary.retained;
  return CUDA_SUCCESS;
}
CUresult cuCtxCreate(CUcontext *context, CUctxCreateParams *, unsigned, CUdevice)
{
  ENTER_WITHOUT_CONTEXT;
  *context = new CUctx_st;
  state().live["contexts"]++;
  state().current.push_back(*context);
  return CUDA_SUCCESS;
}
CUresult cuCtxDetach(CUcontext context)
{
  ENTER_WITHOUT_CONTEXT;
  if (context == &state().primary) return cuDevicePrimaryCtxRelease(0);
  sim::drain_all();
  auto &stack = state().current;
  if (!stack.empty() && stack.back() == context) stack.pop_back();
  state().live["contexts"]--;
  delete context;
  return CUDA_SUCCESS;
}
CUresult cuCtxDestroy(CUcontext context) { return cuCtxDetach(context); }
CUresult cuCtxPushCurrent(CUcontext context)
{
  ENTER_WITHOUT_CONTEXT;
  state().current.push_back(context);
  return CUDA_SUCCESS;
}
CUresult cuCtxPopCurrent(CUcontext *context)
{
  ENTER_WITHOUT_CONTEXT;
  if (state().current.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  if (context) *context = state().current.back();
  state().current.pop_back();
  return CUDA_SUCCESS;
}
CUresult cuCtxGetCurrent(CUcontext *context)
{
  ENTER_WITHOUT_CONTEXT;
  *context = state().current.empty() ? nullptr : state().current.back();
  return CUDA_SUCCESS;
}
CUresult cuCtxSetCurrent(CUcontext context)
{
  ENTER_WITHOUT_CONTEXT;
  if (!state().current.empty()) state().current.pop_back();
  if (context) state().current.push_back(context);
  return CUDA_SUCCESS;
}
CUresult cuCtxGetDevice(CUdevice *device)
{
  ENTER;
  *device = 0;
  return CUDA_SUCCESS;
}
CUresult cuCtxSynchronize(void)
{
  ENTER;
  return sim::drain_all();
}
}
