// Modules: a shared library that the kernel simulator built stands for a cubin.
#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "state.h"

using sim::state;

namespace {

typedef const char *(*Launch)(const char *, void (*)(void **), void **, const int64_t *, const int64_t *, int, int,
                              int, int, const char **, void **, const int64_t *, const int64_t *);

// The size of a shared library in memory, whose section table ends it; 0 if it is none.
size_t image_size(const void *image)
{
  const Elf64_Ehdr *header = (const Elf64_Ehdr *)image;
  if (memcmp(header->e_ident, ELFMAG, SELFMAG) || header->e_type != ET_DYN) return 0;
  return header->e_shoff + (size_t)header->e_shnum * header->e_shentsize;
}

// Every image is loaded from a file of its own: two modules share no state.
void *load(const void *image, size_t bytes)
{
  int file = memfd_create("plait-kernels", 0);
  if (file < 0) return nullptr;
  void *library = nullptr;
  if (write(file, image, bytes) == (ssize_t)bytes) {
    static int number = 0;
    char link[64], target[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    snprintf(target, sizeof target, "/tmp/plait-kernels-%d-%d.so", getpid(), number++);
    if (!symlink(link, target)) {
      library = dlopen(target, RTLD_NOW | RTLD_LOCAL);
      if (!library) fprintf(stderr, "simulated driver: %s\n", dlerror());
      unlink(target);
    }
  }
  close(file);
  return library;
}

CUresult run(CUfunction function, std::vector<int64_t> grid, std::vector<int64_t> block, std::vector<void *> arguments)
{
  size_t count = arguments.size();
  std::vector<std::string> names;
  std::vector<const char *> texts(count);
  std::vector<int64_t> bytes(count), items(count, 1);
  for (size_t k = 0; k < count; k++) {
    names.push_back("argument " + std::to_string(k));
    auto *held = sim::block_of((uintptr_t)arguments[k]);
    if (held) bytes[k] = (int64_t)(held->first + held->second.bytes - (uintptr_t)arguments[k]);
  }
  for (size_t k = 0; k < count; k++) texts[k] = names[k].c_str();
  Launch launch = (Launch)dlsym(function->module->library, "plait_sim_launch");
  const char *message = launch(function->name.c_str(), function->call, arguments.data(), grid.data(), block.data(), 1,
                               1, 0, (int)count, texts.data(), arguments.data(), bytes.data(), items.data());
  if (!message) return CUDA_SUCCESS;
  fprintf(stderr, "simulated driver: %s\n", message);
  return CUDA_ERROR_ILLEGAL_ADDRESS;
}

// The pointers that a kernel is called with, from either of the two ways to pass them.
std::vector<void *> arguments_of(void **parameters, void **extra)
{
  const void *buffer = nullptr;
  size_t bytes = 0;
  for (; extra && *extra != CU_LAUNCH_PARAM_END; extra += 2) {
    if (extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER) buffer = extra[1];
    if (extra[0] == CU_LAUNCH_PARAM_BUFFER_SIZE) bytes = *(size_t *)extra[1];
  }
  std::vector<void *> found;
  if (buffer) {
    found.resize(bytes / sizeof(void *));
    memcpy(found.data(), buffer, found.size() * sizeof(void *));
  }
  for (; !buffer && parameters && *parameters; parameters++) found.push_back(*(void **)*parameters);
  return found;
}

}  // namespace

extern "C" {

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned, CUjit_option *, void **)
{
  ENTER;
  size_t bytes = image_size(image);
  if (!bytes) return CUDA_ERROR_INVALID_IMAGE;
  void *library = load(image, bytes);
  if (!library || !dlsym(library, "plait_sim_launch")) return CUDA_ERROR_INVALID_IMAGE;
  *module = new CUmod_st;
  (*module)->library = library;
  state().live["modules"]++;
  return CUDA_SUCCESS;
}
CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
  return cuModuleLoadDataEx(module, image, 0, nullptr, nullptr);
}
CUresult cuModuleUnload(CUmodule module)
{
  ENTER_WITHOUT_CONTEXT;
  sim::drain_all();
  dlclose(module->library);
  delete module;
  state().live["modules"]--;
  return CUDA_SUCCESS;
}
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
  ENTER;
  void *call = dlsym(module->library, (std::string("plait_call_") + name).c_str());
  if (!call) return CUDA_ERROR_NOT_FOUND;
  module->functions.emplace_back(new CUfunc_st{module, name, (void (*)(void **))call});
  *function = module->functions.back().get();
  return CUDA_SUCCESS;
}
CUresult cuFuncGetAttribute(int *value, CUfunction_attribute, CUfunction)
{
  *value = 0;
  return CUDA_SUCCESS;
}
CUresult cuFuncSetBlockShape(CUfunction, int, int, int) { return CUDA_SUCCESS; }
CUresult cuFuncSetCacheConfig(CUfunction, CUfunc_cache) { return CUDA_SUCCESS; }
CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                        unsigned bz, unsigned, CUstream stream, void **parameters, void **extra)
{
  ENTER;
  long count = state().calls[__func__];
  if (sim::faulty("PLAIT_DRIVER_FAIL_LAUNCH", count)) return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  std::vector<void *> arguments = arguments_of(parameters, extra);
  bool lose = sim::faulty("PLAIT_DRIVER_LOSE_CONTEXT", count);
  return sim::enqueue(stream, [=] {
    if (lose) return CUDA_ERROR_LAUNCH_FAILED;
    return run(function, {gx, gy, gz}, {bx, by, bz}, arguments);
  });
}
}
