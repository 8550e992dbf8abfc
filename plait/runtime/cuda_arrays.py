"""Arrays in device memory, as arguments and as results, without a copy."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from plait.errors import PlaitError
from plait.runtime import dlpack
from plait.runtime.cuda_device import Device
from plait.runtime.dlpack import lends_dlpack

LEGACY_STREAM = 1


def device_memory(index: int, value: Any, device: Device, stream: Any) -> dlpack.Shared:
    """The memory of a device array, which must be row-major, ready for work in a stream."""
    if lends_dlpack(value):
        handle = LEGACY_STREAM if stream is None else stream.handle
        found = dlpack.imported(value, handle)
    else:
        found = _interface(value, device, stream)
    if found.strides is not None and not _row_major(found):
        raise PlaitError(
            f"run: input {index}: expected a row-major array, found strides {found.strides} "
            "bytes; copy it to a contiguous one"
        )
    return found


def _interface(value: Any, device: Device, stream: Any) -> dlpack.Shared:
    described: dict[str, Any] = value.__cuda_array_interface__
    producer = described.get("stream")
    ours = LEGACY_STREAM if stream is None else stream.handle
    if producer is not None and producer not in (LEGACY_STREAM, ours):
        device.cuda.Context.synchronize()
    dtype = np.dtype(described["typestr"])
    strides = described.get("strides")
    shape = tuple(described["shape"])
    return dlpack.Shared(described["data"][0], shape, strides, dtype, value)


def _row_major(array: dlpack.Shared) -> bool:
    assert array.strides is not None
    expected = array.dtype.itemsize
    for extent, stride in zip(reversed(array.shape), reversed(array.strides), strict=True):
        if extent != 1 and stride != expected and 0 not in array.shape:
            return False
        expected *= extent
    return True


@cache
def device_array_class() -> Any:
    """A ``pycuda.gpuarray.GPUArray`` that other libraries can read through DLPack too."""
    base: Any = import_module("pycuda.gpuarray").GPUArray

    class DeviceArray(base):
        """A result in device memory; it holds the memory that it shows."""

        def __dlpack_device__(self) -> tuple[int, int]:
            return dlpack.CUDA, 0

        def __dlpack__(self, *, stream: int | None = None, **_: Any) -> Any:
            work = self.plait_stream
            if work is not None and stream not in (-1, work.handle):
                work.synchronize()
            return dlpack.exported(int(self.gpudata), self.shape, self.strides, self.dtype, self)

    return DeviceArray


def device_array(
    pointer: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    dtype: np.dtype[Any],
    owner: Any,
    stream: Any,
) -> Any:
    """A result at an address, written by work in a stream; strides in bytes."""
    array = device_array_class()(shape, dtype, base=owner, gpudata=pointer, strides=strides)
    array.plait_stream = stream
    return array
