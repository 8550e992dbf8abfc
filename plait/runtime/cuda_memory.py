"""The memory of one run: where every buffer of a plan is, and the copies in and out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from plait.dtypes import Array
from plait.errors import PlaitError
from plait.runtime.cuda_arrays import device_array, device_memory
from plait.runtime.cuda_device import Device
from plait.runtime.dlpack import is_device_array
from plait.runtime.host_plan import HostPlan, View

ALIGNMENT = 16
"""Bytes that one access moves at most: kernels expect buffers to start at a multiple of it."""


class Memory:
    """Addresses of a plan's buffers for a run in a stream, and what keeps them valid."""

    def __init__(
        self,
        device: Device,
        host: HostPlan,
        constants: Mapping[int, Any],
        arrays: Sequence[Any],
        stream: Any,
    ):
        self.device, self.cuda, self.host, self.stream = device, device.cuda, host, stream
        host.check_count(arrays)
        self.arrays = arrays
        self.on_device = any(map(is_device_array, arrays))
        self.owners: dict[int, Any] = dict(constants)
        self.addresses: dict[int, int] = {number: int(it) for number, it in constants.items()}
        self.staged: list[Array] = []
        """Pinned memory that the stream's work still uses."""
        self.moved: dict[int, int] = {}
        """Addresses of device arguments that had to be copied, by buffer."""
        self.saved: list[tuple[View, Any]] = []
        checked: list[Any] = [self.checked(index, array) for index, array in enumerate(arrays)]
        for index, (buffer, given) in enumerate(zip(host.arguments, checked, strict=True)):
            if is_device_array(arrays[index]):
                self.use(index, buffer, given)
            else:
                self.upload(buffer, given)
        for number, buffer in enumerate(host.buffers):
            if number not in self.addresses:
                self.own(number, buffer.nbytes)

    def checked(self, index: int, array: Any) -> Any:
        """An argument as a numpy array or as shared device memory; raises if it does not fit."""
        if not is_device_array(array):
            return self.host.check_array(index, array)
        given = device_memory(index, array, self.device, self.stream)
        self.host.check_type(index, given.shape, given.dtype)
        return given

    def own(self, number: int, nbytes: int) -> None:
        """Gives a buffer memory of its own."""
        self.owners[number] = self.device.allocate(nbytes, self.stream)
        self.addresses[number] = int(self.owners[number])

    def upload(self, buffer: int, array: Array) -> None:
        """Copies a host array through pinned memory."""
        self.own(buffer, array.nbytes)
        if array.nbytes:
            pinned = self.pinned(array.nbytes)
            pinned.view(array.dtype).reshape(array.shape)[...] = array
            self.cuda.memcpy_htod_async(self.addresses[buffer], pinned, self.stream)

    def pinned(self, nbytes: int) -> Array:
        """Pinned host memory that lives until the run is over."""
        block: Array = self.device.pinned.allocate((nbytes,), np.uint8)
        self.staged.append(block)
        return block

    def use(self, index: int, buffer: int, given: Any) -> None:
        """Uses a device array where it is, or a copy if kernels could not read it there."""
        nbytes = self.host.buffers[buffer].nbytes
        if given.pointer % ALIGNMENT == 0 or not nbytes:
            self.owners[buffer], self.addresses[buffer] = given.owner, given.pointer
            return
        self.own(buffer, nbytes)
        self.owners[len(self.host.buffers) + index] = given.owner
        self.moved[buffer] = given.pointer
        self.cuda.memcpy_dtod_async(self.addresses[buffer], given.pointer, nbytes, self.stream)

    def address(self, view: View) -> int:
        """Where a view starts."""
        item = self.host.buffers[view.buffer].dtype.itemsize
        return self.addresses[view.buffer] + view.offset * item

    def nbytes(self, view: View) -> int:
        """The size of a view without its gaps."""
        return prod(view.shape) * self.host.buffers[view.buffer].dtype.itemsize

    def copy(self, pairs: Iterable[tuple[View, View]], stream: Any) -> None:
        """Copies views onto views."""
        for source, target in pairs:
            if not (is_dense(source) and is_dense(target)):
                raise PlaitError("the cuda backend copies row-major views only, found strides")
            if nbytes := self.nbytes(source):
                there, here = self.address(target), self.address(source)
                self.cuda.memcpy_dtod_async(there, here, nbytes, stream)

    def results(self) -> list[Any]:
        """The results as device arrays. One that would show an argument or a constant is a copy,
        unless it is the argument that it takes over."""
        shared = {*self.host.arguments, *self.host.constants}
        found: list[Any] = []
        for number, view in enumerate(self.host.results):
            if number in self.host.aliases:
                argument = self.arrays[self.host.aliases[number]]
                found.append(argument if is_device_array(argument) else self.fetch(number))
                continue
            owner, address = self.owners[view.buffer], self.address(view)
            if view.buffer in shared:
                whole = self.host.buffers[view.buffer]
                owner = self.device.allocate(whole.nbytes, self.stream)
                self.saved.append((view, owner))
                address = int(owner) + view.offset * whole.dtype.itemsize
            dtype = self.host.result_dtypes[number]
            strides = tuple(stride * dtype.itemsize for stride in view.strides)
            found.append(device_array(address, view.shape, strides, dtype, owner, self.stream))
        self.copy_results(self.stream)
        return found

    def copy_results(self, stream: Any) -> None:
        """Copies results that are not where they belong: those of arguments and constants first,
        then those that arguments take over."""
        for view, owner in self.saved:
            if nbytes := self.host.buffers[view.buffer].nbytes:
                self.cuda.memcpy_dtod_async(int(owner), self.addresses[view.buffer], nbytes, stream)
        for number, argument in self.host.aliases.items():
            if is_device_array(self.arrays[argument]):
                self.take_over(self.host.results[number], self.host.arguments[argument], stream)
        for buffer, pointer in self.moved.items():
            nbytes = self.host.buffers[buffer].nbytes
            self.cuda.memcpy_dtod_async(pointer, self.addresses[buffer], nbytes, stream)

    def take_over(self, view: View, buffer: int, stream: Any) -> None:
        """Leaves a result in the memory of an argument."""
        here, there = self.address(view), self.addresses[buffer]
        if here == there or not self.nbytes(view):
            return
        if not is_dense(view):
            raise PlaitError(
                "the cuda backend updates a device array in place from a row-major result only; "
                "materialize it"
            )
        self.cuda.memcpy_dtod_async(there, here, self.nbytes(view), stream)

    def fetched(self) -> list[Fetched]:
        """The results, on their way to the host; an argument in host memory takes its own over."""
        return [self.fetch(number) for number in range(len(self.host.results))]

    def fetch(self, number: int) -> Fetched:
        """Starts the copy of a result to the host."""
        view, dtype = self.host.results[number], self.host.result_dtypes[number]
        nbytes = self.host.buffers[view.buffer].nbytes
        pinned = self.pinned(max(nbytes, 1))
        if nbytes:
            self.cuda.memcpy_dtoh_async(pinned, self.addresses[view.buffer], self.stream)
        argument = self.host.aliases.get(number)
        target = None if argument is None else self.arrays[argument]
        return Fetched(pinned[:nbytes], view, dtype, target)


@dataclass(frozen=True)
class Fetched:
    """A result on its way to the host; called once it is there."""

    data: Array
    view: View
    dtype: np.dtype[Any]
    target: Array | None
    """The argument that takes the result over."""

    def __call__(self) -> Array:
        items = self.data.view(self.dtype)
        strides = [stride * self.dtype.itemsize for stride in self.view.strides]
        strided = np.lib.stride_tricks.as_strided
        result: Array = strided(items[self.view.offset :], self.view.shape, strides).copy()
        if self.target is not None:
            self.target[...] = result.reshape(self.target.shape)
        return result


def is_dense(view: View) -> bool:
    """Whether the elements of a view follow one another, row-major."""
    expected = 1
    for extent, stride in zip(reversed(view.shape), reversed(view.strides), strict=True):
        if extent != 1 and stride != expected:
            return False
        expected *= extent
    return True
