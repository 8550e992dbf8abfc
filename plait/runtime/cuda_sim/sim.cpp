// The simulator's runtime: blocks one after another, the threads of a block as fibers, and a check
// of every access that the compiler reports through ThreadSanitizer's hooks.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include <string>
#include <unordered_map>
#include <vector>

namespace {

struct Dim3 {
  unsigned x, y, z;
};

// Who touched a byte last: in which block, by which thread, after how many barriers of the block and
// how many fences of the launch, and whether at once with the rest of an atomic operation.
struct Mark {
  int64_t block = -1;
  int32_t thread = -1;
  int32_t epoch = -1;
  int32_t warp_epoch = -1;  // after how many barriers of the warp
  int64_t clock = -1;
  bool atomic = false;
};
struct Shadow {
  Mark write, read;
  bool more_threads = false;  // other threads read it too since the last barrier
  bool more_warps = false;    // of other warps
  bool more_blocks = false;   // other blocks read it too
};
struct Buffer {
  const char *name;
  char *base;
  int64_t bytes, item;
  std::vector<Shadow> shadow;
};
enum State { READY, BARRIER, WARP, DONE };
struct Fiber {
  ucontext_t context;
  std::vector<char> stack;
  State state;
  int line;
};

// Order between blocks: a thread that fences and then changes a counter atomically releases what it
// and, up to their last barrier, its mates did; one that changes the counter later and then fences
// acquires what was released through that counter until then.
struct Release {
  size_t number;  // among those of its counter
  Mark fence;
};
struct Acquire {
  const char *counter;
  size_t count;
  Mark fence;
};
struct Counter {
  size_t count = 0;
  std::unordered_map<int64_t, Release> releases;  // by block
};
struct Order {
  int32_t warp_epoch = 0;
  Mark fence;  // the thread's last
  const char *counter = nullptr;  // changed since then
  size_t count = 0;
};

constexpr size_t STACK = 256 << 10;
std::vector<Fiber> fibers;
ucontext_t scheduler;
std::vector<Buffer> buffers;
Buffer shared_memory;
std::unordered_map<const char *, Counter> counters;
std::vector<Order> orders;      // of the threads of the block that runs
std::vector<Acquire> acquired;  // by them
int current;
int64_t block_number, fences;
int epoch;
bool checking, failed;
std::string message;
const char *kernel_name;
void (*entry)(void **);
void **entry_arguments;
char lanes[1024][16];

}  // namespace

extern "C" {
Dim3 threadIdx __attribute__((section("plait_state"))), blockIdx __attribute__((section("plait_state"))),
    blockDim __attribute__((section("plait_state"))), gridDim __attribute__((section("plait_state")));
extern char __start_plait_state[], __stop_plait_state[];
extern char __start_plait_shared[] __attribute__((weak)), __stop_plait_shared[] __attribute__((weak));
}

namespace {

void leave(State state, int line)
{
  Fiber &fiber = fibers[current];
  fiber.state = state;
  fiber.line = line;
  swapcontext(&fiber.context, &scheduler);
}

// Reports an error and gives up on the launch: the fiber is never resumed.
void fail(const std::string &what)
{
  if (!failed) {
    failed = true;
    message = std::string("kernel ") + kernel_name + ", block " + std::to_string(block_number) + ", thread " +
              std::to_string(current) + ": " + what;
  }
  leave(DONE, 0);
}

void set_thread(int number)
{
  current = number;
  threadIdx.x = (unsigned)number % blockDim.x;
  threadIdx.y = (unsigned)number / blockDim.x % blockDim.y;
  threadIdx.z = (unsigned)number / blockDim.x / blockDim.y;
}

void run_fiber()
{
  entry(entry_arguments);
  leave(DONE, 0);
}

void start(Fiber &fiber)
{
  if (fiber.stack.empty()) fiber.stack.resize(STACK);
  getcontext(&fiber.context);
  fiber.context.uc_stack.ss_sp = fiber.stack.data();
  fiber.context.uc_stack.ss_size = fiber.stack.size();
  fiber.context.uc_link = &scheduler;
  makecontext(&fiber.context, run_fiber, 0);
  fiber.state = READY;
}

void diverged(int waiting, const char *what)
{
  failed = true;
  message = std::string("kernel ") + kernel_name + ", block " + std::to_string(block_number) + ": " + what +
            " in divergent code: thread " + std::to_string(waiting) + " waits at line " +
            std::to_string(abs(fibers[waiting].line)) + ", which not all of its mates reach";
}

// Lets a group of threads go on if all of them wait at the same place.
bool release(int first, int last, State state, const char *what)
{
  int waiting = -1;
  for (int t = first; t < last; t++)
    if (fibers[t].state == state) waiting = t;
  if (waiting < 0) return false;
  for (int t = first; t < last; t++)
    if (fibers[t].state != state || fibers[t].line != fibers[waiting].line) {
      diverged(waiting, what);
      return false;
    }
  for (int t = first; t < last; t++) fibers[t].state = READY;
  return true;
}

void run_block(int threads)
{
  for (int t = 0; t < threads; t++) start(fibers[t]);
  for (;;) {
    bool ran = false;
    for (int t = 0; t < threads && !failed; t++)
      if (fibers[t].state == READY) {
        ran = true;
        set_thread(t);
        swapcontext(&scheduler, &fibers[t].context);
      }
    if (failed) return;
    if (ran) continue;
    bool released = false;
    for (int first = 0; first < threads; first += 32) {
      int last = first + 32 < threads ? first + 32 : threads;
      released = release(first, last, WARP, "shuffle") || released;
      if (failed) return;
    }
    if (released) continue;
    if (!release(0, threads, BARRIER, "barrier")) return;
    epoch++;
  }
}

// Without barriers and shuffles the threads of a block are plain calls, on one fiber.
int plain_threads;
void run_plain()
{
  for (int t = 0; t < plain_threads && !failed; t++) {
    set_thread(t);
    entry(entry_arguments);
  }
  current = 0;
  leave(DONE, 0);
}

void run_block_plain(int threads)
{
  plain_threads = threads;
  Fiber &fiber = fibers[0];
  if (fiber.stack.empty()) fiber.stack.resize(STACK);
  getcontext(&fiber.context);
  fiber.context.uc_stack.ss_sp = fiber.stack.data();
  fiber.context.uc_stack.ss_size = fiber.stack.size();
  fiber.context.uc_link = &scheduler;
  makecontext(&fiber.context, run_plain, 0);
  swapcontext(&scheduler, &fiber.context);
}

std::string place(const Buffer &buffer, const char *address)
{
  return "element " + std::to_string((address - buffer.base) / buffer.item) + " of " + buffer.name;
}

void race(const Buffer &buffer, const char *address, const char *what, const Mark &other)
{
  fail(std::string("race: ") + what + " " + place(buffer, address) + ", which thread " +
       std::to_string(other.thread) + " of block " + std::to_string(other.block) +
       " touches too, with no barrier between");
}

Mark here()
{
  Mark mark;
  mark.block = block_number, mark.thread = current, mark.epoch = epoch, mark.clock = fences;
  mark.warp_epoch = orders[current].warp_epoch;
  return mark;
}

bool same_warp(const Mark &a, const Mark &b) { return a.thread / 32 == b.thread / 32; }

// Whether what happened at `first` is over before `then`, in the same block.
bool before(const Mark &first, const Mark &then)
{
  if (first.epoch != then.epoch) return first.epoch < then.epoch;
  if (same_warp(first, then) && first.warp_epoch != then.warp_epoch) return first.warp_epoch < then.warp_epoch;
  return first.thread == then.thread && first.clock < then.clock;
}

// Whether fences and a counter order what another block did before what this thread does now.
bool ordered(const Mark &other)
{
  Mark now = here();
  for (const Acquire &acquire : acquired) {
    if (!before(acquire.fence, now)) continue;
    const Counter &counter = counters[acquire.counter];
    auto release = counter.releases.find(other.block);
    if (release != counter.releases.end() && release->second.number < acquire.count &&
        before(other, release->second.fence))
      return true;
  }
  return false;
}

// Whether no barrier of the block or the warp is between an access in this block and now.
bool since_barrier(const Mark &other)
{
  if (other.epoch != epoch) return false;
  return other.thread / 32 != current / 32 || other.warp_epoch == orders[current].warp_epoch;
}

// Whether another access to the same byte may happen at the same time as one by this thread.
bool apart(const Mark &other, bool global)
{
  if (other.block < 0) return false;
  if (other.block != block_number) return global && !ordered(other);
  return other.thread != current && since_barrier(other);
}

void mark(Buffer &buffer, char *address, int64_t size, bool writes, bool atomic = false)
{
  bool global = &buffer != &shared_memory;
  for (int64_t k = 0; k < size; k++) {
    Shadow &s = buffer.shadow[address - buffer.base + k];
    bool both = atomic && s.write.atomic;
    if (!both && apart(s.write, global)) return race(buffer, address, writes ? "writes" : "reads", s.write);
    bool other_read = apart(s.read, global);
    bool same_block = s.read.block == block_number;
    bool again = same_block && s.read.epoch == epoch && (s.more_warps || since_barrier(s.read));
    if (writes) {
      if (other_read || (again && s.more_threads) || (global && s.more_blocks))
        return race(buffer, address, "writes", s.read);
      s.write = here();
      s.write.atomic = atomic;
    } else {
      if (!global && s.write.block != block_number)
        return fail("reads " + place(buffer, address) + " before it is written");
      s.more_threads = again && (s.more_threads || s.read.thread != current);
      s.more_warps = again && (s.more_warps || s.read.thread / 32 != current / 32);
      s.more_blocks = s.more_blocks || (other_read && !same_block);
      s.read = here();
    }
  }
}

bool on_stack(const Fiber &fiber, const char *address)
{
  return !fiber.stack.empty() && address >= fiber.stack.data() && address < fiber.stack.data() + STACK;
}

void check(void *pointer, int64_t size, bool writes, bool atomic = false)
{
  if (!checking || failed) return;
  char *address = (char *)pointer;
  if (address >= shared_memory.base && address + size <= shared_memory.base + shared_memory.bytes)
    return mark(shared_memory, address, size, writes, atomic);
  for (Buffer &buffer : buffers)
    if (address >= buffer.base && address + size <= buffer.base + buffer.bytes)
      return mark(buffer, address, size, writes, atomic);
  if (address >= __start_plait_state && address < __stop_plait_state) return;
  if (on_stack(fibers[0], address) || on_stack(fibers[current], address)) return;
  for (const Fiber &fiber : fibers)
    if (on_stack(fiber, address)) return;
  const Buffer *nearest = nullptr;
  int64_t best = INT64_MAX;
  auto consider = [&](const Buffer &buffer) {
    int64_t before = buffer.base - address, after = address - (buffer.base + buffer.bytes);
    int64_t distance = before > after ? before : after;
    if (buffer.base && distance < best) best = distance, nearest = &buffer;
  };
  for (Buffer &buffer : buffers) consider(buffer);
  consider(shared_memory);
  std::string what = writes ? "writes" : "reads";
  if (!nearest) return fail(what + " outside of every buffer");
  fail(what + " out of bounds: " + place(*nearest, address) + ", which has " +
       std::to_string(nearest->bytes / nearest->item) + " elements");
}

void check_aligned(void *pointer, int64_t size, bool writes)
{
  if (checking && !failed && (uintptr_t)pointer % size)
    fail(std::string(writes ? "writes " : "reads ") + std::to_string(size) + " bytes at once where they are not aligned");
  check(pointer, size, writes);
}

}  // namespace

extern "C" {

void plait_sim_barrier(int line) { leave(BARRIER, line); }
void plait_sim_warp(int line) { leave(WARP, line); }
void *plait_sim_lane(int lane) { return lanes[current / 32 * 32 + (lane & 31)]; }
int plait_sim_lane_id(void) { return current & 31; }

// A barrier of a warp. A shuffle is none: it moves values, and orders no memory.
void plait_sim_warp_barrier(int line)
{
  leave(WARP, line);
  orders[current].warp_epoch++;
}

void plait_sim_fence(void)
{
  if (!checking || failed) return;
  Order &order = orders[current];
  fences++;
  order.fence = here();
  fences++;  // so that what comes before it and what comes after it differ from it
  if (order.counter) acquired.push_back({order.counter, order.count, order.fence});
  order.counter = nullptr;
}

void plait_sim_atomic(void *address, int64_t size)
{
  check(address, size, true, true);
  if (!checking || failed) return;
  Order &order = orders[current];
  Counter &counter = counters[(char *)address];
  if (order.fence.block >= 0) counter.releases[block_number] = {counter.count, order.fence};
  order.counter = (char *)address;
  order.count = counter.count++;
}

// Runs a launch; returns an error message or null. `names`, `bases`, `bytes`, `items` describe the
// buffers that the kernel may touch.
const char *plait_sim_launch(const char *name, void (*function)(void **), void **arguments, const int64_t *grid,
                             const int64_t *block, int check_accesses, int waits, int backwards, int count, const char **names,
                             void **bases, const int64_t *bytes, const int64_t *items)
{
  kernel_name = name, entry = function, entry_arguments = arguments;
  checking = check_accesses, failed = false, epoch = 0, fences = 0;
  gridDim = {(unsigned)grid[0], (unsigned)grid[1], (unsigned)grid[2]};
  blockDim = {(unsigned)block[0], (unsigned)block[1], (unsigned)block[2]};
  int threads = (int)(block[0] * block[1] * block[2]);
  if (threads > 1024) {
    message = std::string("kernel ") + name + ": a block has at most 1024 threads, found " + std::to_string(threads);
    return message.c_str();
  }
  if ((int)fibers.size() < threads) fibers.resize(threads);
  buffers.clear();
  counters.clear();
  for (int k = 0; k < count; k++) {
    bool known = false;
    for (Buffer &other : buffers) known = known || other.base == bases[k];
    if (known) continue;
    buffers.push_back({names[k], (char *)bases[k], bytes[k], items[k], {}});
    if (checking) buffers.back().shadow.resize(bytes[k]);
  }
  shared_memory.name = "shared memory";
  shared_memory.base = __start_plait_shared;
  shared_memory.bytes = __start_plait_shared ? __stop_plait_shared - __start_plait_shared : 0;
  shared_memory.item = 1;
  int64_t blocks = grid[0] * grid[1] * grid[2];
  for (int64_t step = 0; step < blocks && !failed; step++) {
    int64_t b = backwards ? blocks - 1 - step : step;
    block_number = b, epoch = 0;
    orders.assign(threads, Order());
    acquired.clear();
    blockIdx = {(unsigned)(b % grid[0]), (unsigned)(b / grid[0] % grid[1]), (unsigned)(b / grid[0] / grid[1])};
    if (checking) shared_memory.shadow.assign(shared_memory.bytes, Shadow());
    if (shared_memory.bytes) memset(shared_memory.base, 0xff, shared_memory.bytes);
    if (waits) run_block(threads);
    else run_block_plain(threads);
  }
  return failed ? message.c_str() : nullptr;
}

// ThreadSanitizer's hooks: the compiler calls them before every access of a kernel.
void __tsan_init(void) {}
void __tsan_func_entry(void *) {}
void __tsan_func_exit(void) {}
#define PLAIT_HOOKS(size)                                                                                              \
  void __tsan_read##size(void *p) { check_aligned(p, size, false); }                                                   \
  void __tsan_write##size(void *p) { check_aligned(p, size, true); }                                                   \
  void __tsan_unaligned_read##size(void *p) { check(p, size, false); }                                                 \
  void __tsan_unaligned_write##size(void *p) { check(p, size, true); }                                                 \
  void __tsan_volatile_read##size(void *p) { check(p, size, false); }                                                  \
  void __tsan_volatile_write##size(void *p) { check(p, size, true); }
PLAIT_HOOKS(1)
PLAIT_HOOKS(2)
PLAIT_HOOKS(4)
PLAIT_HOOKS(8)
PLAIT_HOOKS(16)
void __tsan_read_range(void *p, unsigned long size) { check(p, (int64_t)size, false); }
void __tsan_write_range(void *p, unsigned long size) { check(p, (int64_t)size, true); }
void __tsan_vptr_update(void **, void *) {}
void __tsan_vptr_read(void **) {}
}
