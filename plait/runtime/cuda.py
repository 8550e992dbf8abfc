"""The ``cuda`` backend: CUDA C compiled for the device at hand and launched through PyCUDA."""

from __future__ import annotations

from threading import Lock
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from plait.dtypes import Array
from plait.errors import PlaitError
from plait.lowering.convert_nest_to_gpu import geometry
from plait.lowering.target_cuda import functions_of, print_module
from plait.runtime.cuda_compile import cubin
from plait.runtime.cuda_device import device, reported
from plait.runtime.cuda_graph import Graph, captured
from plait.runtime.cuda_memory import Fetched, Memory
from plait.runtime.dlpack import is_device_array
from plait.runtime.host_plan import HostPlan, read_host


class CompiledPlan:
    """A level 4 GPU module on a device: buffers from pools, kernels in order in one stream.

    Its constants are uploaded once. Its runs follow one another, whatever their streams.
    """

    def __init__(self, module: ModuleOp, *, name: str = "main"):
        self.device = device()
        self.cuda = self.device.cuda
        self.host: HostPlan = read_host(module, name)
        self.lock = Lock()
        self.last: Any = None
        functions = functions_of(module)
        code = cubin(print_module(module), self.device.capability) if functions else None
        with self.device.active(), reported(self.cuda):
            self.done: Any = self.cuda.Event(self.cuda.event_flags.DISABLE_TIMING)
            self.constants = {
                number: self.uploaded(value) for number, value in self.host.constants.items()
            }
            self.module: Any = self.cuda.module_from_buffer(code) if code else None
            self.kernels: dict[str, tuple[Any, Any, Any]] = {}
            for function in functions:
                label, count = function.sym_name.data, len(function.body.block.args)
                entry = self.module.get_function(label).prepare("P" * count)
                grid, block = geometry(function, "grid"), geometry(function, "block")
                self.kernels[label] = (entry, grid, block)

    def uploaded(self, value: Array) -> Any:
        """Device memory that holds an array for as long as the plan lives."""
        memory = self.device.allocate(value.nbytes, None)
        if value.nbytes:
            self.cuda.memcpy_htod(int(memory), np.ascontiguousarray(value))
        return memory

    def run(self, *arrays: Any, stream: Any = None) -> list[Any]:
        """The results; an array whose argument a result takes over is updated in place.

        With numpy arrays the results are numpy arrays, and the run is over when it returns. If any
        argument is in device memory (``pycuda.gpuarray``, ``__cuda_array_interface__``, DLPack),
        the results are ``GPUArray``s, and the work may still be under way in ``stream`` (a
        ``pycuda.driver.Stream``; the default stream if None). Row-major device arrays are used in
        place. Raises :class:`PlaitError`.
        """
        self.check_stream(stream)
        with self.device.active(), self.lock, reported(self.cuda):
            self.follow(stream)
            memory = Memory(self.device, self.host, self.constants, arrays, stream)
            self.enqueue(memory, stream)
            results = memory.results() if memory.on_device else memory.fetched()
            self.record(stream)
            if memory.staged:
                self.wait(stream)
            return [result() if isinstance(result, Fetched) else result for result in results]

    def capture(self, *arrays: Any) -> Replay:
        """A run on these device arrays that can be repeated at little cost, with what they hold by
        then; as a CUDA graph where the driver has them. It has been run once."""
        if not all(map(is_device_array, arrays)):
            raise PlaitError("capture: expected arrays in device memory, found one in host memory")
        with self.device.active(), self.lock, reported(self.cuda):
            stream = self.cuda.Stream()
            self.follow(stream)
            memory = Memory(self.device, self.host, self.constants, arrays, stream)
            self.enqueue(memory, stream)
            results = memory.results()
            self.record(stream)
            stream.synchronize()
            work = captured(lambda: self.again(memory, stream), stream, self.cuda.Error)
            return Replay(self, memory, results, work)

    def again(self, memory: Memory, stream: Any) -> None:
        """The work of a run in memory that has been laid out."""
        self.enqueue(memory, stream)
        memory.copy_results(stream)

    def enqueue(self, memory: Memory, stream: Any) -> None:
        """Puts the copies and kernels of a run into a stream."""
        for number, launch in enumerate(self.host.launches):
            memory.copy(self.host.copies.get(number, ()), stream)
            entry, grid, block = self.kernels[launch.kernel]
            pointers = [memory.address(view) for view in launch.arguments]
            entry.prepared_async_call(grid, block, stream, *pointers)
        memory.copy(self.host.copies.get(len(self.host.launches), ()), stream)

    def check_stream(self, stream: Any) -> None:
        """Raises :class:`PlaitError` for what is no stream of PyCUDA."""
        if stream is not None and not isinstance(stream, self.cuda.Stream):
            raise PlaitError(f"run: expected a pycuda.driver.Stream, found {type(stream).__name__}")

    def follow(self, stream: Any) -> None:
        """Lets a stream wait for the last run, which shares constants and counters."""
        if self.last is not None and stream is not None and self.last is not stream:
            stream.wait_for_event(self.done)

    def record(self, stream: Any) -> None:
        """Remembers that a run is in a stream."""
        self.done.record(stream)
        self.last = stream

    def wait(self, stream: Any) -> None:
        """Waits until the work of a stream is done."""
        if stream is None:
            self.done.synchronize()
        else:
            stream.synchronize()


class Replay:
    """A captured run."""

    def __init__(self, plan: CompiledPlan, memory: Memory, results: list[Any], graph: Graph | None):
        self.plan = plan
        self.memory = memory
        self.results = results
        self.graph = graph

    def run(self, stream: Any = None) -> list[Any]:
        """The same results, written anew by work in a stream."""
        plan = self.plan
        plan.check_stream(stream)
        with plan.device.active(), plan.lock, reported(plan.cuda):
            plan.follow(stream)
            if self.graph is None or not self.graph.launch(stream):
                plan.again(self.memory, stream)
            plan.record(stream)
        for result in self.results:
            result.plait_stream = stream
        return self.results
