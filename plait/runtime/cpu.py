"""Runs a level 4 module on the CPU: compiled once, then one native call per run."""

from __future__ import annotations

import itertools
import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.utils.exceptions import DiagnosticException

from plait.errors import PlaitError
from plait.lowering.llvm_text import ModuleText
from plait.lowering.target_llvm import kernels_of, print_kernel
from plait.runtime import cpu_jit, cpu_pool
from plait.runtime.cpu_memory import ALIGNMENT, ResultPool, aligned_bytes, as_array, place
from plait.runtime.host_plan import HostPlan, View, read_host

Array = NDArray[Any]

_DEFAULT_WORK = 1000
"""Elementary operations per unit of a kernel that does not say."""
_CHUNK_WORK = 40_000
"""Elementary operations worth handing to another thread."""
_WAKE_WORK = 150_000
"""Elementary operations of a whole plan below which other threads stay asleep."""


class CompiledPlan:
    """A compiled level 4 module.

    ``module`` holds kernels and a host function ``@name``; ``threads`` overrides
    ``PLAIT_NUM_THREADS`` and the number of cores. Results are the same for any number of threads.
    """

    def __init__(self, module: ModuleOp, *, threads: int | None = None, name: str = "main") -> None:
        if threads is not None and threads < 1:
            raise PlaitError(f"threads: expected at least 1, found {threads}")
        self.threads = threads or cpu_pool.default_threads()
        self.host: HostPlan = read_host(module, name)
        self._lock = threading.Lock()
        self._compile(module)
        self._lay_out()

    # -- building --------------------------------------------------------------------------

    def _compile(self, module: ModuleOp) -> None:
        """Prints each kernel the plan calls, equal ones once, and loads the code."""
        called = {launch.kernel for launch in self.host.launches}
        text = ModuleText(cpu_jit.host_features())
        names: dict[str, str] = {}
        self._kernel: dict[str, str] = {}
        self._work: dict[str, int] = {}
        for op in kernels_of(module):
            kernel = op.sym_name.data
            if kernel not in called:
                continue
            printed = print_kernel(op, text, "kernel", self._aligned(kernel))
            self._kernel[kernel] = names.setdefault(printed, f"kernel{len(names)}")
            work = op.attributes.get("plait.work")
            known = isinstance(work, IntegerAttr)
            self._work[kernel] = max(1, work.value.data) if known else _DEFAULT_WORK
        missing = called - self._kernel.keys()
        if missing:
            raise DiagnosticException(f"cpu: the host calls '@{min(missing)}', which is no kernel")
        functions = [printed.replace("@kernel", f"@{unique}") for printed, unique in names.items()]
        self.llvm_ir = "\n".join(functions) + "\n" + str(text)
        exports = [f"{unique}.packed" for unique in names.values()]
        self._library = cpu_jit.load(self.llvm_ir, exports) if exports else None

    def _aligned(self, kernel: str) -> set[int]:
        """The numbers of a kernel's buffers that always begin at a multiple of the alignment."""
        host = self.host

        def known(view: View) -> bool:
            offset = view.offset * host.buffers[view.buffer].dtype.itemsize
            return view.buffer not in host.arguments and offset % ALIGNMENT == 0

        launches = [launch for launch in host.launches if launch.kernel == kernel]
        return {
            number
            for number in range(len(launches[0].arguments))
            if all(known(launch.arguments[number]) for launch in launches)
        }

    def _lay_out(self) -> None:
        """Fixes everything that does not change from run to run."""
        host = self.host
        offsets, size = place(host)
        self.arena_bytes = size
        """Bytes of the memory all temporaries share."""
        self._arena = aligned_bytes(size)
        base = self._arena.ctypes.data
        self._fixed: dict[int, Array] = {}
        self._pointers = np.zeros(len(host.buffers), dtype=np.int64)
        for buffer, offset in offsets.items():
            info = host.buffers[buffer]
            self._pointers[buffer] = base + offset
            memory = self._arena[offset : offset + info.nbytes]
            self._fixed[buffer] = as_array(memory, info.dtype, info.shape)
        for buffer, value in host.constants.items():
            memory = aligned_bytes(value.nbytes)
            array = as_array(memory, value.dtype, value.shape)
            array[...] = value
            self._fixed[buffer] = array
            self._pointers[buffer] = array.ctypes.data
        fixed = {*host.arguments, *self._fixed}
        self._fresh = [b for b in range(len(host.buffers)) if b not in fixed]
        self._results = ResultPool([host.buffers[b].nbytes for b in self._fresh])
        self._segments = self._make_segments()

    def _make_segments(self) -> list[_Segment]:
        """Runs of launches between host-side copies."""
        cuts = sorted({0, len(self.host.launches), *self.host.copies})
        return [_Segment(self, a, b) for a, b in itertools.pairwise(cuts)]

    def chunking(self, kernel: str, extent: int) -> tuple[int, int]:
        """(grain, chunks) of a launch: chunks big enough to be worth a thread's while."""
        work = self._work[kernel]
        grain = max(1, -(-_CHUNK_WORK // work), -(-extent // (self.threads * 8)))
        if self.threads == 1:
            grain = max(extent, 1)
        return grain, max(1, -(-extent // grain))

    def address(self, kernel: str) -> int:
        """The machine address of a kernel's packed form."""
        assert self._library is not None
        return self._library.address(f"{self._kernel[kernel]}.packed")

    def work(self, kernel: str) -> int:
        """Elementary operations per unit."""
        return self._work[kernel]

    # -- running ---------------------------------------------------------------------------

    def run(self, *arrays: Array) -> list[Array]:
        """Runs the plan; raises :class:`PlaitError` for arguments that do not fit.

        Contiguous arguments are read in place. An argument the program updates in place holds
        the new value afterwards, and is itself the corresponding result.
        """
        given = self.host.check(arrays)
        with self._lock:
            return self._run(given)

    def _run(self, given: list[Array]) -> list[Array]:
        host = self.host
        arrays = dict(self._fixed)
        pointers = self._pointers
        keep: list[Array] = []
        for buffer, array in zip(host.arguments, given, strict=True):
            usable = array.flags.c_contiguous and array.flags.aligned
            inside = array if usable else np.array(array, order="C")
            keep.append(inside)
            arrays[buffer] = inside
            pointers[buffer] = inside.ctypes.data
        for buffer in self._fresh:
            info = host.buffers[buffer]
            memory, pointers[buffer] = self._results.take(info.nbytes)
            arrays[buffer] = as_array(memory, info.dtype, info.shape)
        for segment in self._segments:
            self._copy(segment.first, arrays)
            segment.run(pointers)
        self._copy(len(host.launches), arrays)
        results = [
            _strided(arrays[view.buffer], view, dtype)
            for view, dtype in zip(host.results, host.result_dtypes, strict=True)
        ]
        return self._settle(results, given, arrays)

    def _copy(self, time: int, arrays: dict[int, Array]) -> None:
        for source, target in self.host.copies.get(time, []):
            into = arrays[target.buffer]
            np.copyto(
                _strided(into, target, into.dtype),
                _strided(arrays[source.buffer], source, into.dtype),
            )

    def _written_over(self, arrays: dict[int, Array], argument: int, target: Array) -> Array:
        """An argument that kernels wrote over: the caller's array, or a copy of it inside."""
        inside = arrays[self.host.arguments[argument]]
        if inside is not target:
            np.copyto(target, inside)
        return target

    def _settle(
        self, results: list[Array], given: list[Array], arrays: dict[int, Array]
    ) -> list[Array]:
        """Copies what is updated in place into the caller's arrays, after all reads."""
        shared = set(self.host.constants)
        if self.host.aliases:
            # A view of an argument would change under the caller when that is written below.
            shared |= set(self.host.arguments)
        for index, view in enumerate(self.host.results):
            if view.buffer in shared:
                results[index] = results[index].copy()
        for index, argument in self.host.aliases.items():
            target = given[argument]
            if self.host.results[index].buffer == self.host.arguments[argument]:
                results[index] = self._written_over(arrays, argument, target)
                continue
            np.copyto(target, results[index].reshape(target.shape).view(target.dtype))
            results[index] = target
        return results


class _Segment:
    """Launches ``first`` to ``last``, as the table the native loop reads."""

    def __init__(self, plan: CompiledPlan, first: int, last: int) -> None:
        launches = plan.host.launches[first:last]
        self.first, self.last = first, last
        sources: list[int] = []
        offsets: list[int] = []
        rows: list[list[int]] = []
        total = 0
        for launch in launches:
            extent = launch.end
            if launch.begin:
                raise DiagnosticException(f"cpu: the call of '@{launch.kernel}' must begin at 0")
            if extent <= 0:
                continue
            start = len(sources)
            for view in launch.arguments:
                info = plan.host.buffers[view.buffer]
                sources.append(view.buffer)
                offsets.append(view.offset * info.dtype.itemsize)
            grain, chunks = plan.chunking(launch.kernel, extent)
            rows.append([plan.address(launch.kernel), start * 8, extent, grain, chunks])
            total += extent * plan.work(launch.kernel)
        self.sources = np.array(sources, dtype=np.int64)
        self.offsets = np.array(offsets, dtype=np.int64)
        self.arguments = np.zeros(max(1, len(sources)), dtype=np.int64)
        self.steps = np.array(rows, dtype=np.int64).reshape(-1, cpu_pool.STEP_WORDS)
        self.steps[:, 1] += self.arguments.ctypes.data
        memory = aligned_bytes(max(1, len(rows)) * cpu_pool.COUNTER_WORDS * 8)
        self.counters = memory.view(np.int64)
        self._job = (self.steps.ctypes.data, len(self.steps), self.counters.ctypes.data)
        self._given = self.arguments[: len(sources)]
        parallel = any(row[4] > 1 for row in rows)
        self.threads = plan.threads if parallel and total >= _WAKE_WORK else 1

    def run(self, pointers: NDArray[np.int64]) -> None:
        """Runs the launches on the buffers at ``pointers``."""
        if not len(self.steps):
            return
        np.add(pointers[self.sources], self.offsets, out=self._given)
        self.counters.fill(0)
        cpu_pool.POOL.run(*self._job, self.threads)


def _strided(array: Array, view: View, dtype: np.dtype[Any]) -> Array:
    flat = array.reshape(-1).view(dtype)
    if view.whole:
        return flat.reshape(view.shape)
    size = dtype.itemsize
    strides = tuple(stride * size for stride in view.strides)
    if 0 in view.shape:
        return np.empty(view.shape, dtype)
    return np.ndarray(view.shape, dtype, flat, view.offset * size, strides)
