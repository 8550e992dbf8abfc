"""What PyCUDA does on the simulated driver; every function runs in a process of its own.

python tests/cuda_driver/cases.py NAME
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pycuda.driver as cuda
from pycuda import gpuarray

import plait
from plait.errors import PlaitError
from plait.runtime import cuda_device
from plait.runtime.cache import cache_folder
from plait.runtime.driver import compiled

LIBRARY = ctypes.CDLL("libcuda.so.1")
KINDS = ("memory", "pinned", "modules", "streams", "events", "graphs", "contexts")


def calls(*names: str) -> int:
    """How often functions of the driver were called."""
    return sum(LIBRARY.plait_driver_calls(name.encode()) for name in names)


def alive() -> dict[str, int]:
    """What the driver still holds."""
    gc.collect()
    counts = {kind: LIBRARY.plait_driver_live(kind.encode()) for kind in KINDS}
    return {kind: count for kind, count in counts.items() if count}


def softmax() -> tuple[Any, np.ndarray, np.ndarray]:
    """A plan for the GPU, an argument and the result that it must have."""
    x = plait.empty(8, 100, name="x")
    plan = plait.schedule((x * 3).softmax(-1))
    array = np.random.default_rng(0).standard_normal((8, 100)).astype(np.float32)
    [want] = plan.run(array, backend="numpy")
    return compiled(plan.module, "cuda"), array, want


def total() -> tuple[Any, np.ndarray]:
    """A plan for a sum over many blocks, which count themselves in a constant buffer."""
    x = plait.empty(1, 70_000, name="x")
    return compiled(plait.schedule(x.sum()).module, "cuda"), np.ones((1, 70_000), np.float32)


def updating() -> tuple[Any, np.ndarray]:
    """A plan whose only argument becomes its double."""
    x = plait.empty(5, 8, name="x", donated=True)
    plan = plait.schedule(plait.assign(x, x * 2))
    return compiled(plan.module, "cuda"), np.arange(40, dtype=np.float32).reshape(5, 8)


def context() -> Any:
    """A user's own context, current."""
    cuda.init()
    return cuda.Device(0).make_context()


def fails(words: Sequence[str], work: Callable[..., object], *given: Any, **more: Any) -> None:
    """Holds that work ends in one line with these words."""
    try:
        work(*given, **more)
    except PlaitError as error:
        assert all(word in str(error) for word in words), error
        assert "\n" not in str(error)
    else:
        raise AssertionError("expected an error")


def close(found: Any, want: np.ndarray) -> None:
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-30)


def case_host_arrays() -> None:
    plan, array, want = softmax()
    for _ in range(3):
        close(plan.run(array)[0], want)
    assert cuda.Context.get_current() is None
    before = calls("cuMemAlloc_v2")
    plan.run(array)
    assert calls("cuMemAlloc_v2") == before
    del plan
    cuda_device.release()
    assert not alive()


def case_constants_are_uploaded_once() -> None:
    plan, array = total()
    assert len(plan.constants) == 1
    for _ in range(3):
        assert float(plan.run(array)[0]) == 70_000
    assert calls("cuMemcpyHtoD_v2") == 1
    assert calls("cuMemcpyHtoDAsync_v2") == 3


def case_modules_are_kept_on_disk() -> None:
    folder = cache_folder("cuda")
    plan, array, want = softmax()
    [entry] = folder.iterdir()
    whole = entry.read_bytes()
    for damaged in (whole[:-9], b"", whole[:99] + b"x" + whole[100:]):
        entry.write_bytes(damaged)
        plan, array, want = softmax()
        close(plan.run(array)[0], want)
        assert entry.read_bytes()[32:36] == b"\x7fELF"
    os.environ["PLAIT_DRIVER_FAIL_COMPILE"] = "1"
    plan, array, want = softmax()
    close(plan.run(array)[0], want)
    assert list(folder.iterdir()) == [entry]


def case_users_context_and_stream() -> None:
    mine = context()
    stream = cuda.Stream()
    plan, array, want = softmax()
    given = gpuarray.to_gpu_async(array, stream=stream)
    copies = calls("cuMemcpyDtoDAsync_v2", "cuMemcpyDtoH_v2", "cuMemcpyHtoDAsync_v2")
    waits = calls("cuStreamSynchronize", "cuCtxSynchronize", "cuEventSynchronize")
    [result] = plan.run(given, stream=stream)
    after = calls("cuMemcpyDtoDAsync_v2", "cuMemcpyDtoH_v2", "cuMemcpyHtoDAsync_v2")
    assert after == copies
    assert calls("cuStreamSynchronize", "cuCtxSynchronize", "cuEventSynchronize") == waits
    assert isinstance(result, gpuarray.GPUArray)
    assert not stream.is_done()
    close(fetched(result, stream), want)
    assert cuda.Context.get_current() == mine
    assert calls("cuDevicePrimaryCtxRetain") == 0
    del plan, given, result, stream
    cuda_device.release()
    mine.pop()
    mine.detach()
    del mine
    assert not alive()


def fetched(result: Any, stream: Any) -> np.ndarray:
    stream.synchronize()
    return result.get()


def case_runs_in_two_streams_follow_one_another() -> None:
    mine = context()
    plan, array = total()
    ones = gpuarray.to_gpu(array)
    streams = [cuda.Stream(), cuda.Stream()]
    results = [plan.run(ones, stream=streams[turn % 2])[0] for turn in range(4)]
    streams[1].synchronize()
    assert [float(result.get()) for result in results] == [70_000] * 4
    mine.pop()


def case_a_result_may_outlive_its_context() -> None:
    plan, array, want = softmax()
    with plan.device.active():
        given = gpuarray.to_gpu(array)
    [result] = plan.run(given)
    assert cuda.Context.get_current() is None
    with plan.device.active():
        close(result.get(), want)
    del result, given, plan
    cuda_device.release()
    assert not alive()


class Lent:
    """Device memory of another library."""

    def __init__(self, array: Any, **changes: Any):
        self.array = array
        self.__cuda_array_interface__ = {**array.__cuda_array_interface__, **changes}


def case_array_interface() -> None:
    mine = context()
    plan, array, want = softmax()
    given = gpuarray.to_gpu(array)
    close(plan.run(Lent(given))[0].get(), want)
    stream = cuda.Stream()
    close(plan.run(Lent(given, stream=stream.handle))[0].get(), want)
    strided = Lent(given, strides=(4, 32))
    fails(
        (
            "input 0",
            "row-major",
            "(4, 32)",
            "copy",
        ),
        plan.run,
        strided,
    )
    fails(
        (
            "input 0",
            "(8, 100)",
            "(4, 200)",
        ),
        plan.run,
        Lent(given, shape=(4, 200), strides=None),
    )
    fails(
        (
            "float32",
            "float64",
        ),
        plan.run,
        Lent(given, typestr="<f8", strides=None),
    )
    fails(
        (
            "pycuda.driver.Stream",
            "int",
        ),
        plan.run,
        Lent(given),
        stream=3,
    )
    mine.pop()


def case_misaligned_arrays_are_copied() -> None:
    mine = context()
    plan, array, want = softmax()
    room = gpuarray.to_gpu(np.zeros(801, np.float32))
    room[1:].set(array.reshape(-1))
    close(plan.run(room[1:].reshape(8, 100))[0].get(), want)
    double, start = updating()
    memory = gpuarray.to_gpu(np.zeros(41, np.float32))
    part = memory[1:].reshape(5, 8)
    part.set(start)
    [result] = double.run(part)
    assert result is part
    close(memory.get(), np.concatenate([[0], 2 * start.reshape(-1)]))
    mine.pop()


def case_dlpack() -> None:
    mine = context()
    plan, array, want = softmax()
    [result] = plan.run(gpuarray.to_gpu(array))
    again = plait.empty(8, 100, name="y")
    negate = compiled(plait.schedule(-again).module, "cuda")

    class Producer:
        def __dlpack_device__(self) -> tuple[int, int]:
            return result.__dlpack_device__()

        def __dlpack__(self, **options: Any) -> Any:
            return result.__dlpack__(**options)

    from plait.runtime import dlpack

    close(-negate.run(Producer())[0].get(), want)
    assert not dlpack._lent
    capsule = result.__dlpack__()
    assert len(dlpack._lent) == 1
    del capsule
    assert not dlpack._lent
    mine.pop()


def case_updated_in_place() -> None:
    mine = context()
    plan, start = updating()
    on_host = start.copy()
    plan.run(on_host)
    close(on_host, 2 * start)
    given = gpuarray.to_gpu(start)
    [result] = plan.run(given)
    assert result is given
    close(given.get(), 2 * start)
    mine.pop()


def case_graphs() -> None:
    mine = context()
    plan, array, want = softmax()
    given = gpuarray.to_gpu(array)
    replay = plan.capture(given)
    close(replay.results[0].get(), want)
    stream = cuda.Stream()
    given.set(array[::-1].copy())
    launches, graphs = calls("cuLaunchKernel"), calls("cuGraphLaunch")
    [result] = replay.run(stream)
    stream.synchronize()
    close(result.get(), want[::-1])
    if os.environ.get("PLAIT_DRIVER_NO_GRAPHS"):
        assert (calls("cuGraphLaunch"), calls("cuLaunchKernel") > launches) == (graphs, True)
    else:
        assert (calls("cuGraphLaunch"), calls("cuLaunchKernel")) == (graphs + 1, launches)
    fails(("device memory",), plan.capture, array)
    del replay, result, plan, given, stream
    cuda_device.release()
    mine.pop()
    mine.detach()
    del mine
    assert not alive()


def case_out_of_memory() -> None:
    plan, array, want = softmax()
    first = calls("allocations of device")
    for number in (first + 1, first + 3):
        os.environ["PLAIT_DRIVER_FAIL_ALLOC"] = str(number)
        close(plan.run(array)[0], want)
        plan.device.free_held()
    os.environ["PLAIT_DRIVER_FAIL_ALLOC"] = "all"
    plan.device.free_held()
    fails(
        (
            "out of memory",
            "free memory",
        ),
        plan.run,
        array,
    )
    del os.environ["PLAIT_DRIVER_FAIL_ALLOC"]
    close(plan.run(array)[0], want)
    os.environ["PLAIT_DRIVER_FAIL_PINNED"] = "all"
    plan.device.free_held()
    fails(("out of memory",), plan.run, array)
    del os.environ["PLAIT_DRIVER_FAIL_PINNED"], plan
    cuda_device.release()
    assert not alive()


def case_failed_launch() -> None:
    plan, array, want = softmax()
    os.environ["PLAIT_DRIVER_FAIL_LAUNCH"] = str(calls("cuLaunchKernel") + 1)
    fails(("too many resources",), plan.run, array)
    close(plan.run(array)[0], want)
    del plan
    cuda_device.release()
    assert not alive()


def case_lost_context() -> None:
    plan, array, _ = softmax()
    os.environ["PLAIT_DRIVER_LOSE_CONTEXT"] = str(calls("cuLaunchKernel") + 1)
    for _ in range(2):
        fails(
            (
                "launch failure",
                "context is lost",
                "new process",
            ),
            plan.run,
            array,
        )
    fails(
        (
            "launch failure",
            "context is lost",
        ),
        softmax,
    )


def case_failed_compile() -> None:
    os.environ["PLAIT_DRIVER_FAIL_COMPILE"] = "1"
    fails(
        (
            "cannot compile",
            "error: the compiler was told to fail",
        ),
        softmax,
    )
    cuda_device.release()
    assert not alive()


def case_no_device() -> None:
    os.environ["PLAIT_DRIVER_NO_DEVICE"] = "1"
    fails(
        (
            "no usable CUDA device",
            "CUDA_VISIBLE_DEVICES",
            "--backend cpu",
        ),
        softmax,
    )


def case_no_compiler() -> None:
    os.environ["PATH"] = os.environ["CUDA_HOME"] = "/nowhere"
    fails(
        (
            "needs a compiler",
            "nvcc",
            "pip install",
        ),
        softmax,
    )


if __name__ == "__main__":
    globals()[f"case_{sys.argv[1]}"]()
