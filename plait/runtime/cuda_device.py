"""The device, its context and its memory pools, shared by all plans of a process."""

from __future__ import annotations

import atexit
from collections.abc import Generator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any

from plait.errors import PlaitError
from plait.runtime.cuda_pool import Block, Pool

_LOST = ("illegal", "launch failed", "launch failure", "destroyed", "misaligned", "timed out")


def driver() -> Any:
    """PyCUDA's driver module, initialised; :class:`PlaitError` says what is missing and where to
    get it: PyCUDA, the driver, or a device."""
    try:
        cuda: Any = import_module("pycuda.driver")
    except ImportError as error:
        if "libcuda" in str(error):
            raise PlaitError(
                "the cuda backend needs NVIDIA's driver (libcuda.so.1): install it from "
                "nvidia.com/drivers, or use --backend cpu"
            ) from None
        if "undefined symbol" in str(error):
            raise PlaitError(
                "the cuda backend: PyCUDA was built for a newer driver than the one installed: "
                "update the driver, or build PyCUDA again with pip install --no-cache-dir pycuda"
            ) from None
        raise PlaitError(
            "the cuda backend needs PyCUDA: pip install 'plait[cuda]', or use --backend cpu"
        ) from None
    try:
        cuda.init()
        count = cuda.Device.count()
    except cuda.Error as error:
        raise PlaitError(
            f"the cuda backend found no usable CUDA device ({error}): check nvidia-smi and "
            "CUDA_VISIBLE_DEVICES, or use --backend cpu"
        ) from None
    if not count:
        raise PlaitError(
            "the cuda backend found no CUDA device: check nvidia-smi and CUDA_VISIBLE_DEVICES, or "
            "use --backend cpu"
        )
    return cuda


@contextmanager
def reported(cuda: Any) -> Generator[None]:
    """Errors of the driver as one line; what is still under way is waited for first, so that
    nothing that it uses is freed."""
    try:
        yield
    except cuda.Error as error:
        with suppress(cuda.Error):
            cuda.Context.synchronize()
        text = str(error).splitlines()[0]
        lost = any(word in text for word in _LOST)
        advice = "; its context is lost: start a new process" if lost else ""
        if isinstance(error, cuda.MemoryError):
            advice = "; free memory, or run a smaller program"
        raise PlaitError(f"the cuda backend failed: {text}{advice}") from None


class Device:
    """A context with its memory pools: one for each stream, whose order makes reuse safe."""

    def __init__(self, cuda: Any, context: Any):
        self.cuda = cuda
        self.context = context
        self.pools: dict[int, Pool] = {}
        with self.active():
            self.pinned: Any = import_module("pycuda.tools").PageLockedMemoryPool()
            self.capability: tuple[int, int] = context.get_device().compute_capability()

    @contextmanager
    def active(self) -> Generator[None]:
        """Makes the context current, and leaves the caller's as it was."""
        current = self.cuda.Context.get_current()
        if current is not None and current == self.context:
            yield
            return
        self.context.push()
        try:
            yield
        finally:
            self.cuda.Context.pop()

    def allocate(self, nbytes: int, stream: Any) -> Block:
        """Memory for work in a stream; given back to the stream's pool when nothing holds it."""
        handle = 0 if stream is None else stream.handle
        pool = self.pools.setdefault(handle, Pool(self.cuda, stream))
        try:
            return pool.allocate(nbytes)
        except self.cuda.MemoryError:
            self.free_held()
            return pool.allocate(nbytes)

    def free_held(self) -> None:
        """Gives memory that no one uses back to the driver."""
        for pool in self.pools.values():
            pool.free_held()
        self.pinned.free_held()


_devices: dict[int, Device] = {}
"""By the address of their context."""
_primary: list[Any] = []
"""The primary context, once it is retained."""


def device() -> Device:
    """The device of PyCUDA's current context, else the first device with its primary context, which
    other libraries use too."""
    cuda = driver()
    with reported(cuda):
        context = cuda.Context.get_current()
        if context is None:
            if not _primary:
                _primary.append(cuda.Device(0).retain_primary_context())
            context = _primary[0]
        found = _devices.get(context.handle)
        if found is None:
            found = _devices[context.handle] = Device(cuda, context)
        return found


@atexit.register
def release() -> None:
    """Gives up pools and the primary context; plans that are alive keep theirs."""
    for known in _devices.values():
        with suppress(known.cuda.Error), known.active():
            known.free_held()
    _devices.clear()
    while _primary:
        _primary.pop().detach()
