"""DLPack: device memory of other libraries, and ours for them, without a copy."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np

from plait.errors import PlaitError

CUDA = 2
_KINDS = {"i": 0, "u": 1, "f": 2, "b": 6}
_BFLOAT = 4
_NAME = b"dltensor"
_USED = b"used_dltensor"


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _Managed(ctypes.Structure):
    pass


_Deleter = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Managed))
_Managed._fields_ = [
    ("tensor", _Tensor),
    ("context", ctypes.c_void_p),
    ("deleter", _Deleter),
]
_api = ctypes.pythonapi
_api.PyCapsule_GetPointer.restype = ctypes.c_void_p
_api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_api.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
_Destructor = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_api.PyCapsule_New.restype = ctypes.py_object
_api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, _Destructor]
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_IsValid", _api)
)
_pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", _api)
)


def is_device_array(value: Any) -> bool:
    """Whether a value lies in device memory: a ``GPUArray``, or what has
    ``__cuda_array_interface__`` or DLPack for CUDA."""
    return not isinstance(value, np.ndarray) and (
        lends_dlpack(value) or hasattr(value, "__cuda_array_interface__")
    )


def lends_dlpack(value: Any) -> bool:
    """Whether a value lends device memory through DLPack."""
    where = getattr(value, "__dlpack_device__", None)
    return where is not None and where()[0] == CUDA


@dataclass(frozen=True)
class Shared:
    """Memory that a producer lends for as long as this lives; strides in bytes."""

    pointer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    dtype: np.dtype[Any]
    owner: Any


class _Owner:
    """Calls the producer's deleter once, when it goes."""

    def __init__(self, managed: Any):
        self.managed = managed

    def __del__(self) -> None:
        if self.managed.contents.deleter:
            self.managed.contents.deleter(self.managed)


def imported(array: Any, stream: int) -> Shared:
    """What an array with ``__dlpack__`` holds, once its producer's work is done in ``stream``
    (1 is the default one); bf16 as its bits."""
    capsule = array.__dlpack__(stream=stream)
    managed = ctypes.cast(_api.PyCapsule_GetPointer(capsule, _NAME), ctypes.POINTER(_Managed))
    _api.PyCapsule_SetName(capsule, _USED)
    owner = _Owner(managed)
    tensor: Any = managed.contents.tensor
    kind = next((k for k, code in _KINDS.items() if code == tensor.code), None)
    if tensor.code == _BFLOAT:
        kind = "u"
    if kind is None or tensor.lanes != 1:
        raise PlaitError(f"run: expected a plain element type, found DLPack type {tensor.code}")
    dtype = np.dtype(np.bool_) if kind == "b" else np.dtype(f"{kind}{tensor.bits // 8}")
    count: int = tensor.ndim
    strides = tuple(tensor.strides[k] * dtype.itemsize for k in range(count))
    shape = tuple(tensor.shape[k] for k in range(count))
    return Shared(
        (tensor.data or 0) + tensor.byte_offset,
        shape,
        strides if tensor.strides else None,
        dtype,
        owner,
    )


_lent: dict[int, Any] = {}
"""What consumers hold, by the address of its description."""


@_Deleter
def _give_back(managed: Any) -> None:
    _lent.pop(ctypes.addressof(managed.contents), None)


@_Destructor
def _unused(capsule: int) -> None:
    if _is_valid(capsule, _NAME):
        _lent.pop(_pointer_of(capsule, _NAME), None)


def exported(
    pointer: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    dtype: np.dtype[Any],
    owner: Any,
) -> Any:
    """A capsule for memory of device 0, which keeps ``owner`` alive; strides in bytes."""
    managed = _Managed()
    count = len(shape)
    extents = (ctypes.c_int64 * count)(*shape)
    steps = (ctypes.c_int64 * count)(*(stride // dtype.itemsize for stride in strides))
    tensor: Any = managed.tensor
    tensor.data, tensor.device_type, tensor.ndim = pointer, CUDA, count
    tensor.code, tensor.bits, tensor.lanes = _KINDS[dtype.kind], dtype.itemsize * 8, 1
    tensor.shape = ctypes.cast(extents, ctypes.POINTER(ctypes.c_int64))
    tensor.strides = ctypes.cast(steps, ctypes.POINTER(ctypes.c_int64))
    managed.deleter = _give_back
    address = ctypes.addressof(managed)
    _lent[address] = (managed, extents, steps, owner)
    return _api.PyCapsule_New(address, _NAME, _unused)
