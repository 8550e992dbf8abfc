"""Runs kernels and whole plans in the simulator."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from plait.dtypes import Array
from plait.errors import PlaitError
from plait.lowering.convert_nest_to_gpu import geometry
from plait.lowering.target_cuda import functions_of, print_module
from plait.runtime.cuda_sim.build import library
from plait.runtime.host_plan import HostPlan, View, read_host

_GUARD = 256
"""Bytes around every buffer that no kernel may touch."""


@dataclass(frozen=True)
class Kernel:
    """A kernel of a text: its name, its launch, and names for its buffers."""

    name: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    buffers: tuple[str, ...]


class Simulator:
    """A CUDA C text, compiled; ``check`` watches every access, ``backwards`` runs the last block
    first."""

    def __init__(
        self, text: str, kernels: Sequence[Kernel], check: bool = True, backwards: bool = False
    ):
        self.kernels = {kernel.name: kernel for kernel in kernels}
        self.check = check
        self.backwards = backwards
        self.waits = "__sync" in text or "__shfl" in text
        self._library = library(text, list(self.kernels), check)
        self._launch: Any = self._library.plait_sim_launch
        self._launch.restype = ctypes.c_char_p

    def launch(self, name: str, arrays: Sequence[Array]) -> None:
        """Runs a kernel on arrays, in place; raises :class:`PlaitError` for what it does wrong."""
        kernel = self.kernels[name]
        count = len(arrays)
        pointers = (ctypes.c_void_p * count)(*(array.ctypes.data for array in arrays))
        sizes = (ctypes.c_int64 * count)(*(array.nbytes for array in arrays))
        items = (ctypes.c_int64 * count)(*(array.itemsize for array in arrays))
        names = (ctypes.c_char_p * count)(*(buffer.encode() for buffer in kernel.buffers[:count]))
        message = self._launch(
            name.encode(),
            ctypes.cast(getattr(self._library, f"plait_call_{name}"), ctypes.c_void_p),
            pointers,
            (ctypes.c_int64 * 3)(*kernel.grid),
            (ctypes.c_int64 * 3)(*kernel.block),
            int(self.check),
            int(self.waits),
            int(self.backwards),
            count,
            names,
            pointers,
            sizes,
            items,
        )
        if message is not None:
            raise PlaitError(f"cuda-sim: {message.decode()}")


class CompiledPlan:
    """A level 4 GPU module: its kernels in the simulator, its host function followed in order."""

    def __init__(
        self,
        module: ModuleOp,
        *,
        check: bool = True,
        backwards: bool = False,
        name: str = "main",
    ):
        self.host: HostPlan = read_host(module, name)
        functions = functions_of(module)
        kernels = [
            Kernel(
                function.sym_name.data,
                geometry(function, "grid"),
                geometry(function, "block"),
                tuple(
                    argument.name_hint or f"buffer {number}"
                    for number, argument in enumerate(function.body.block.args)
                ),
            )
            for function in functions
        ]
        self.simulator = (
            Simulator(print_module(module), kernels, check, backwards) if kernels else None
        )

    def run(self, *arrays: Any) -> list[Array]:
        """The results; an array whose argument a result takes over is updated in place."""
        memory = self.memory(arrays)
        for launch in self.host.launches:
            assert self.simulator is not None
            self.simulator.launch(launch.kernel, [self.seen(memory, v) for v in launch.arguments])
        results = [
            as_dtype(self.seen(memory, view), dtype)
            for view, dtype in zip(self.host.results, self.host.result_dtypes, strict=True)
        ]
        for number, argument in self.host.aliases.items():
            if isinstance(arrays[argument], np.ndarray):
                target: Array = arrays[argument]
                target[...] = results[number].reshape(target.shape)
        return results

    def memory(self, arrays: Sequence[Any]) -> list[Array]:
        """A guarded copy of every buffer of the plan."""
        self.host.check(arrays)
        memory = [guarded(buffer.shape, buffer.dtype) for buffer in self.host.buffers]
        for number, constant in self.host.constants.items():
            memory[number][...] = constant
        for buffer, array in zip(self.host.arguments, arrays, strict=True):
            given = np.asarray(array)
            target = memory[buffer]
            bits = np.ascontiguousarray(given).view(target.dtype)
            target[...] = bits.reshape(buffer_shape(self.host, buffer))
        return memory

    def seen(self, memory: Sequence[Array], view: View) -> Array:
        """What a view of a buffer shows."""
        buffer = memory[view.buffer]
        if view.whole:
            return buffer
        item = buffer.itemsize
        flat = buffer.reshape(-1)
        strides = [stride * item for stride in view.strides]
        return np.lib.stride_tricks.as_strided(flat[view.offset :], view.shape, strides)


def as_dtype(array: Array, dtype: np.dtype[Any]) -> Array:
    """A contiguous copy with its bits read as another dtype of the same width."""
    return np.ascontiguousarray(array).copy().view(dtype).reshape(array.shape)


def buffer_shape(host: HostPlan, number: int) -> tuple[int, ...]:
    return host.buffers[number].shape


def guarded(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """An array with unused memory around it."""
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    raw = np.zeros(size + 2 * _GUARD, np.uint8)
    start = (-raw.ctypes.data) % 64 + 64
    return raw[start : start + size].view(dtype).reshape(shape)
