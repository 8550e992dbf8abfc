// Memory: every block is known, new memory holds NaNs, and copies happen when their stream gets there.
#include <cstdlib>
#include <cstring>

#include "state.h"

using sim::state;

namespace sim {

const std::pair<const uintptr_t, Block> *block_of(uintptr_t address)
{
  auto next = state().blocks.upper_bound(address);
  if (next == state().blocks.begin()) return nullptr;
  --next;
  return address < next->first + next->second.bytes ? &*next : nullptr;
}

}  // namespace sim

namespace {

CUresult allocate(void **pointer, size_t bytes, bool host)
{
  if (!bytes) return CUDA_ERROR_INVALID_VALUE;
  const char *kind = host ? "pinned" : "device";
  long count = ++state().calls[std::string("allocations of ") + kind];
  if (!host && sim::faulty("PLAIT_DRIVER_FAIL_ALLOC", count)) return CUDA_ERROR_OUT_OF_MEMORY;
  if (host && sim::faulty("PLAIT_DRIVER_FAIL_PINNED", count)) return CUDA_ERROR_OUT_OF_MEMORY;
  *pointer = aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (!*pointer) return CUDA_ERROR_OUT_OF_MEMORY;
  memset(*pointer, 0xff, bytes);
  state().blocks[(uintptr_t)*pointer] = {bytes, host};
  return CUDA_SUCCESS;
}

CUresult release(uintptr_t address)
{
  auto found = state().blocks.find(address);
  if (found == state().blocks.end()) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = sim::drain_all();  // as a real driver does
  memset((void *)address, 0xff, found->second.bytes);
  state().blocks.erase(found);
  free((void *)address);
  return result;
}

bool holds(CUdeviceptr address, size_t bytes)
{
  auto *block = sim::block_of(address);
  return block && address + bytes <= block->first + block->second.bytes;
}

CUresult copy(void *target, const void *source, size_t bytes, bool to_device, bool from_device)
{
  if (to_device && bytes && !holds((CUdeviceptr)target, bytes)) return CUDA_ERROR_INVALID_VALUE;
  if (from_device && bytes && !holds((CUdeviceptr)source, bytes)) return CUDA_ERROR_INVALID_VALUE;
  memmove(target, source, bytes);
  return CUDA_SUCCESS;
}

// A copy that the caller waits for.
CUresult copy_now(void *target, const void *source, size_t bytes, bool to_device, bool from_device)
{
  if (CUresult failed = sim::drain_all()) return failed;
  return copy(target, source, bytes, to_device, from_device);
}

}  // namespace

extern "C" {

CUresult cuMemAlloc(CUdeviceptr *pointer, size_t bytes)
{
  ENTER;
  return allocate((void **)pointer, bytes, false);
}
CUresult cuMemFree(CUdeviceptr pointer)
{
  ENTER_WITHOUT_CONTEXT;
  return release(pointer);
}
CUresult cuMemAllocHost(void **pointer, size_t bytes)
{
  ENTER;
  return allocate(pointer, bytes, true);
}
CUresult cuMemHostAlloc(void **pointer, size_t bytes, unsigned)
{
  ENTER;
  return allocate(pointer, bytes, true);
}
CUresult cuMemFreeHost(void *pointer)
{
  ENTER_WITHOUT_CONTEXT;
  return release((uintptr_t)pointer);
}
CUresult cuMemGetInfo(size_t *unused, size_t *total)
{
  ENTER;
  *unused = *total = (size_t)1 << 34;
  return CUDA_SUCCESS;
}
CUresult cuMemGetAddressRange(CUdeviceptr *base, size_t *bytes, CUdeviceptr address)
{
  ENTER;
  auto *block = sim::block_of(address);
  if (!block) return CUDA_ERROR_NOT_FOUND;
  *base = block->first, *bytes = block->second.bytes;
  return CUDA_SUCCESS;
}
CUresult cuMemcpyHtoD(CUdeviceptr target, const void *source, size_t bytes)
{
  ENTER;
  return copy_now((void *)target, source, bytes, true, false);
}
CUresult cuMemcpyDtoH(void *target, CUdeviceptr source, size_t bytes)
{
  ENTER;
  return copy_now(target, (void *)source, bytes, false, true);
}
CUresult cuMemcpyDtoD(CUdeviceptr target, CUdeviceptr source, size_t bytes)
{
  ENTER;
  return copy_now((void *)target, (void *)source, bytes, true, true);
}
CUresult cuMemcpyHtoDAsync(CUdeviceptr target, const void *source, size_t bytes, CUstream stream)
{
  ENTER;
  return sim::enqueue(stream, [=] { return copy((void *)target, source, bytes, true, false); });
}
CUresult cuMemcpyDtoHAsync(void *target, CUdeviceptr source, size_t bytes, CUstream stream)
{
  ENTER;
  return sim::enqueue(stream, [=] { return copy(target, (void *)source, bytes, false, true); });
}
CUresult cuMemcpyDtoDAsync(CUdeviceptr target, CUdeviceptr source, size_t bytes, CUstream stream)
{
  ENTER;
  return sim::enqueue(stream, [=] { return copy((void *)target, (void *)source, bytes, true, true); });
}
CUresult cuMemsetD8Async(CUdeviceptr target, unsigned char value, size_t count, CUstream stream)
{
  ENTER;
  return sim::enqueue(stream, [=] {
    if (!holds(target, count)) return CUDA_ERROR_INVALID_VALUE;
    memset((void *)target, value, count);
    return CUDA_SUCCESS;
  });
}
CUresult cuMemsetD8(CUdeviceptr target, unsigned char value, size_t count)
{
  if (CUresult failed = cuMemsetD8Async(target, value, count, nullptr)) return failed;
  return cuCtxSynchronize();
}
}
