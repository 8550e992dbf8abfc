// What the simulated driver keeps: contexts, memory, streams as queues of work, and its faults.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

struct CUctx_st {
  bool primary = false;
  int retained = 0;
};
struct CUfunc_st;
struct CUmod_st {
  void *library = nullptr;
  std::vector<std::unique_ptr<CUfunc_st>> functions;
};
struct CUfunc_st {
  CUmod_st *module;
  std::string name;
  void (*call)(void **);
};
using Work = std::function<CUresult()>;
struct CUgraph_st {
  std::vector<Work> nodes;
};
struct CUgraphExec_st {
  std::vector<Work> nodes;
};
struct CUstream_st {
  std::deque<Work> queue;
  CUgraph capture = nullptr;  // where work goes instead of the queue
  uint64_t started = 0, added = 0;
};
struct CUevent_st {
  CUstream stream = nullptr;
  uint64_t position = 0;  // how much of the stream's work must be done
  double time = 0;
};

namespace sim {

struct Block {
  size_t bytes;
  bool host;
};

// Everything alive, behind one lock.
struct State {
  std::recursive_mutex lock;
  std::map<uintptr_t, Block> blocks;
  std::vector<CUcontext> current;  // the stack of contexts
  CUctx_st primary;
  CUstream_st default_stream;
  std::vector<CUstream> streams;
  std::map<std::string, long> calls, live;
  CUresult lost = CUDA_SUCCESS;  // once set, all that follows fails with it
  bool initialised = false;
};
State &state();

// Counts a call and says why it must fail, if it must.
CUresult enter(const char *name, bool needs_context = true);
// Whether this call is the one that an environment variable tells to fail: its number from 1.
bool faulty(const char *variable, long count);

CUstream stream_of(CUstream given);
// Puts work into a stream; work in the default stream waits for all others, and they for it.
CUresult enqueue(CUstream stream, Work work);
CUresult drain(CUstream stream);
CUresult drain_all();
CUresult drain_until(CUstream stream, uint64_t position);
// The block that an address is in, or null.
const std::pair<const uintptr_t, Block> *block_of(uintptr_t address);

}  // namespace sim

#define ENTER                                                           \
  std::lock_guard<std::recursive_mutex> guard(sim::state().lock);       \
  if (CUresult refused = sim::enter(__func__)) return refused
#define ENTER_WITHOUT_CONTEXT                                           \
  std::lock_guard<std::recursive_mutex> guard(sim::state().lock);       \
  if (CUresult refused = sim::enter(__func__, false)) return refused
