"""The native step loop, and the persistent threads that run it together.

All threads run the same list of steps. A step is cut into chunks; a thread claims the next chunk
with one atomic addition, and goes to the next step when every chunk of this one is done. A thread
that arrives late finds nothing to claim and catches up: nobody waits for a thread that has not
started. No Python runs between steps.
"""

from __future__ import annotations

import ctypes
import os
import threading
from functools import cache
from typing import Any

from plait.errors import PlaitError
from plait.runtime import cpu_jit

STEP_WORDS = 5
"""Words of a step: function, argument array, extent, grain, number of chunks."""
COUNTER_WORDS = 8
"""Words of a step's counters (one cache line): claimed, done."""

_RUN = """
declare i32 @sched_yield()
PAUSE_DECLARATION

define void @plait_run(ptr %steps, i64 %count, ptr noalias %counters) nounwind {
entry:
  br label %step
step:
  %s = phi i64 [ 0, %entry ], [ %s.next, %finished ]
  %more = icmp slt i64 %s, %count
  br i1 %more, label %start, label %exit
start:
  %row = mul i64 %s, 5
  %p0 = getelementptr i64, ptr %steps, i64 %row
  %p1 = getelementptr i64, ptr %p0, i64 1
  %p2 = getelementptr i64, ptr %p0, i64 2
  %p3 = getelementptr i64, ptr %p0, i64 3
  %p4 = getelementptr i64, ptr %p0, i64 4
  %function = load ptr, ptr %p0
  %arguments = load ptr, ptr %p1
  %extent = load i64, ptr %p2
  %grain = load i64, ptr %p3
  %chunks = load i64, ptr %p4
  %line = mul i64 %s, 8
  %claimed = getelementptr i64, ptr %counters, i64 %line
  %done = getelementptr i64, ptr %claimed, i64 1
  br label %claim
claim:
  %chunk = atomicrmw add ptr %claimed, i64 1 monotonic
  %mine = icmp slt i64 %chunk, %chunks
  br i1 %mine, label %work, label %wait
work:
  %begin = mul i64 %chunk, %grain
  %past = add i64 %begin, %grain
  %short = icmp slt i64 %past, %extent
  %end = select i1 %short, i64 %past, i64 %extent
  call void %function(ptr %arguments, i64 %begin, i64 %end)
  %before = atomicrmw add ptr %done, i64 1 acq_rel
  br label %claim
wait:
  %spins = phi i64 [ 0, %claim ], [ %spins.next, %again ]
  %now = load atomic i64, ptr %done acquire, align 8
  %all = icmp sge i64 %now, %chunks
  br i1 %all, label %finished, label %spin
spin:
  %spins.next = add i64 %spins, 1
  %long = icmp ugt i64 %spins, 2000
  br i1 %long, label %yield, label %pause
yield:
  %ignored = call i32 @sched_yield()
  br label %again
pause:
  PAUSE
  br label %again
again:
  br label %wait
finished:
  %s.next = add i64 %s, 1
  br label %step
exit:
  ret void
}
"""


def _pause(triple: str) -> tuple[str, str]:
    if triple.startswith(("x86_64", "i386", "i686")):
        return "declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"
    if triple.startswith(("aarch64", "arm64")):
        return "declare void @llvm.aarch64.hint(i32)", "call void @llvm.aarch64.hint(i32 1)"
    return "", ""


@cache
def native_run() -> Any:
    """The native step loop as a ctypes function (steps, count, counters)."""
    declaration, pause = _pause(cpu_jit.process_triple())
    text = _RUN.replace("PAUSE_DECLARATION", declaration).replace("PAUSE", pause)
    library = cpu_jit.load(text, ["plait_run"])
    function = library.function("plait_run", ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)
    _kept.append(library)
    return function


_kept: list[Any] = []


def default_threads() -> int:
    """``PLAIT_NUM_THREADS``, or the number of cores this process may use."""
    chosen = os.environ.get("PLAIT_NUM_THREADS")
    if chosen is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else _cores()
    if not chosen.isdigit() or int(chosen) < 1:
        raise PlaitError(
            f"PLAIT_NUM_THREADS: expected a whole number of at least 1, found {chosen!r}; "
            "unset it to use every core"
        )
    return int(chosen)


def _cores() -> int:
    return os.cpu_count() or 1


class _Worker:
    """One persistent thread: woken for a run, and waited for."""

    def __init__(self) -> None:
        self.wake = threading.Semaphore(0)
        self.done = threading.Semaphore(0)
        self.job: tuple[int, int, int] = (0, 0, 0)
        thread = threading.Thread(target=self._serve, name="plait-worker", daemon=True)
        thread.start()

    def _serve(self) -> None:
        run = native_run()
        while True:
            self.wake.acquire()
            run(*self.job)
            self.done.release()


class ThreadPool:
    """The process's worker threads; one run at a time uses them."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forgets the threads, as a forked child must."""
        self._lock = threading.Lock()
        self._workers: list[_Worker] = []

    def run(self, steps: int, count: int, counters: int, threads: int) -> None:
        """Runs the steps on up to ``threads`` threads, this one among them."""
        if threads <= 1 or not self._lock.acquire(blocking=False):
            native_run()(steps, count, counters)
            return
        try:
            while len(self._workers) < threads - 1:
                self._workers.append(_Worker())
            helpers = self._workers[: threads - 1]
            for worker in helpers:
                worker.job = (steps, count, counters)
                worker.wake.release()
            native_run()(steps, count, counters)
            for worker in helpers:
                worker.done.acquire()
        finally:
            self._lock.release()


POOL = ThreadPool()


def _after_fork() -> None:
    # Threads do not survive a fork: the child starts its own.
    POOL.reset()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
