"""CUDA graphs, which PyCUDA does not have: work captured from a stream, launched at once."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from contextlib import suppress
from typing import Any

_THREAD_LOCAL = 1


class _Refused(Exception):
    """The driver does not do it."""


def _call(library: Any, name: str, *arguments: Any) -> None:
    try:
        function = getattr(library, name)
    except AttributeError:
        raise _Refused(name) from None
    if function(*arguments):
        raise _Refused(name)


class Graph:
    """Captured work that can be launched in any stream."""

    def __init__(self, library: Any, executable: ctypes.c_void_p):
        self.library = library
        self.executable = executable

    def launch(self, stream: Any) -> bool:
        """Puts the work into a stream; False if the driver refuses."""
        handle = ctypes.c_void_p(0 if stream is None else stream.handle)
        return not self.library.cuGraphLaunch(self.executable, handle)

    def __del__(self) -> None:
        self.library.cuGraphExecDestroy(self.executable)


def captured(work: Callable[[], None], stream: Any, errors: type[Exception]) -> Graph | None:
    """What ``work`` puts into a stream, as a graph; None where the driver has no graphs or the
    work cannot be captured. The work is not done by that."""
    try:
        library: Any = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    handle, graph = ctypes.c_void_p(stream.handle), ctypes.c_void_p()
    executable = ctypes.c_void_p()
    try:
        _call(library, "cuStreamBeginCapture_v2", handle, _THREAD_LOCAL)
        try:
            work()
        finally:
            _call(library, "cuStreamEndCapture", handle, ctypes.byref(graph))
        flags = ctypes.c_ulonglong(0)
        _call(library, "cuGraphInstantiateWithFlags", ctypes.byref(executable), graph, flags)
    except (_Refused, errors):
        return None
    finally:
        if graph:
            with suppress(_Refused):
                _call(library, "cuGraphDestroy", graph)
    return Graph(library, executable)
