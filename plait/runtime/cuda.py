"""The ``cuda`` backend: CUDA C compiled for the device at hand and launched through PyCUDA."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from plait.dtypes import Array
from plait.errors import PlaitError
from plait.lowering.convert_nest_to_gpu import geometry
from plait.lowering.target_cuda import functions_of, print_module
from plait.runtime.host_plan import HostPlan, View, read_host


def driver() -> Any:
    """PyCUDA's driver module, initialised with a current context.

    Raises :class:`PlaitError` that says what is missing: PyCUDA, the driver, or a device.
    """
    try:
        cuda: Any = import_module("pycuda.driver")
    except ImportError as error:
        if "libcuda" in str(error):
            raise PlaitError(
                "the cuda backend needs NVIDIA's driver (libcuda): install it, or use --backend cpu"
            ) from None
        raise PlaitError(
            "the cuda backend needs PyCUDA: pip install 'plait[cuda]', or use --backend cpu"
        ) from None
    try:
        cuda.init()
        if not cuda.Device.count():
            raise PlaitError("the cuda backend found no CUDA device: use --backend cpu")
        if cuda.Context.get_current() is None:
            cuda.Device(0).retain_primary_context().push()
    except cuda.Error as error:
        raise PlaitError(f"the cuda backend cannot use the device: {error}") from None
    return cuda


class CompiledPlan:
    """A level 4 GPU module on a device: buffers from a pool, kernels in order on one stream."""

    def __init__(self, module: ModuleOp, *, name: str = "main"):
        self.cuda = driver()
        self.host: HostPlan = read_host(module, name)
        functions = functions_of(module)
        self.launches = {
            function.sym_name.data: (geometry(function, "grid"), geometry(function, "block"))
            for function in functions
        }
        self.pool: Any = import_module("pycuda.tools").DeviceMemoryPool()
        self.code: Any = None
        if functions:
            compiler: Any = import_module("pycuda.compiler")
            try:
                self.code = compiler.SourceModule(print_module(module), no_extern_c=True)
            except (OSError, RuntimeError) as error:
                line = str(error).strip().splitlines()[-1]
                raise PlaitError(f"the cuda backend cannot compile its kernels: {line}") from None

    def run(self, *arrays: Any) -> list[Array]:
        """The results; an array whose argument a result takes over is updated in place."""
        cuda, host = self.cuda, self.host
        host.check(arrays)
        try:
            memory = [self.pool.allocate(max(buffer.nbytes, 1)) for buffer in host.buffers]
            for number, constant in host.constants.items():
                cuda.memcpy_htod(memory[number], np.ascontiguousarray(constant))
            for buffer, array in zip(host.arguments, arrays, strict=True):
                if host.buffers[buffer].nbytes:
                    cuda.memcpy_htod(memory[buffer], np.ascontiguousarray(array))
            for launch in host.launches:
                grid, block = self.launches[launch.kernel]
                pointers = [np.uintp(int(memory[view.buffer])) for view in launch.arguments]
                self.code.get_function(launch.kernel)(*pointers, grid=grid, block=block)
            results = [
                self.fetched(memory, view).view(dtype)
                for view, dtype in zip(host.results, host.result_dtypes, strict=True)
            ]
        except cuda.Error as error:
            raise PlaitError(f"the cuda backend failed: {error}") from None
        for number, argument in host.aliases.items():
            if isinstance(arrays[argument], np.ndarray):
                target: Array = arrays[argument]
                target[...] = results[number].reshape(target.shape)
        return results

    def fetched(self, memory: Sequence[Any], view: View) -> Array:
        """A view of a buffer, on the host."""
        buffer = self.host.buffers[view.buffer]
        flat = np.empty(max(buffer.nbytes, 1), np.uint8)
        self.cuda.memcpy_dtoh(flat, memory[view.buffer])
        items = flat[: buffer.nbytes].view(buffer.dtype)
        strides = [stride * items.itemsize for stride in view.strides]
        shown = np.lib.stride_tricks.as_strided(items[view.offset :], view.shape, strides)
        return shown.copy()
