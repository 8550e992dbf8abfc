"""The simulator runs CUDA C as a GPU would, and catches what a GPU would not forgive."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from plait.errors import PlaitError
from plait.runtime.cuda_sim import Kernel, Simulator

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")

BLOCK_SUM = """
extern "C" __global__ void __launch_bounds__(128)
block_sum(const float* __restrict__ x, float* __restrict__ y)
{
  __shared__ float part[4];
  int thread = (int)threadIdx.x;
  float v = x[blockIdx.x * 128 + thread];
  for (int d = 16; d; d /= 2) v += __shfl_down_sync(0xffffffffu, v, d);
  if (thread % 32 == 0) part[thread / 32] = v;
  BARRIER
  if (thread == 0) y[blockIdx.x] = part[0] + part[1] + part[2] + part[3];
}
"""
TRANSPOSE = """
extern "C" __global__ void transpose(const float* __restrict__ x, float* __restrict__ y)
{
  __shared__ float tile[32][33];
  int column = (int)threadIdx.x, row = (int)threadIdx.y;
  tile[row][column] = x[(blockIdx.y * 32 + row) * 64 + blockIdx.x * 32 + column];
  __syncthreads();
  y[(blockIdx.x * 32 + row) * 64 + blockIdx.y * 32 + column] = tile[column][row];
}
"""
TOTAL = """
extern "C" __global__ void total(const float* __restrict__ x, float* __restrict__ y,
    float* __restrict__ partial, int* __restrict__ tickets)
{
  __shared__ int shared[1];
  int block = (int)blockIdx.x, thread = (int)threadIdx.x;
  if (thread == WRITER) partial[block] = x[block] + 1.0f;
  BARRIER
  if (thread == 0) {
    RELEASE
    int ticket = TICKET;
    ACQUIRE
    shared[0] = ticket;
  }
  __syncthreads();
  if (shared[0] == LAST) {
    if (thread == 0) atomicExch(&tickets[0], 0);
    if (thread == 5) y[0] = partial[0] + partial[1] + partial[2] + partial[3];
  }
}
"""
SOUND = {
    "WRITER": "0",
    "BARRIER": "",
    "RELEASE": "__threadfence();",
    "ACQUIRE": "__threadfence();",
    "TICKET": "atomicAdd(&tickets[0], 1)",
    "LAST": "3",
}


def simulator(text: str, name: str, grid: int | tuple[int, ...], block: int | tuple[int, ...]):
    def three(size: int | tuple[int, ...]) -> tuple[int, ...]:
        given = (size,) if isinstance(size, int) else size
        return (*given, 1, 1)[:3]

    return Simulator(text, [Kernel(name, three(grid), three(block), ("x", "y"))])


def test_shuffles_and_shared_memory() -> None:
    x = np.random.default_rng(0).standard_normal(512).astype(np.float32)
    y = np.zeros(4, np.float32)
    text = BLOCK_SUM.replace("BARRIER", "__syncthreads();")
    simulator(text, "block_sum", 4, 128).launch("block_sum", [x, y])
    np.testing.assert_allclose(y, x.reshape(4, 128).sum(1), rtol=1e-5)


def test_transpose_through_shared_memory() -> None:
    x = np.arange(64 * 64, dtype=np.float32).reshape(64, 64)
    y = np.zeros_like(x)
    simulator(TRANSPOSE, "transpose", (2, 2), (32, 32)).launch("transpose", [x, y])
    np.testing.assert_array_equal(y, x.T)


def test_missing_barrier() -> None:
    x, y = np.zeros(512, np.float32), np.zeros(4, np.float32)
    with pytest.raises(PlaitError, match=r"race.*shared memory|before it is written"):
        simulator(BLOCK_SUM.replace("BARRIER", ""), "block_sum", 4, 128).launch("block_sum", [x, y])


def test_missing_barrier_before_reuse() -> None:
    text = """
    extern "C" __global__ void k(const float* __restrict__ x, float* __restrict__ y)
    {
      __shared__ float s[64];
      int t = (int)threadIdx.x;
      s[t] = x[t];
      __syncthreads();
      float v = s[63 - t];
      s[t] = v;
      y[t] = v;
    }
    """
    with pytest.raises(PlaitError, match="race"):
        simulator(text, "k", 1, 64).launch(
            "k", [np.zeros(64, np.float32)] * 1 + [np.zeros(64, np.float32)]
        )


@pytest.mark.parametrize("offset", [-1, 64])
def test_out_of_bounds(offset: int) -> None:
    text = f"""
    extern "C" __global__ void k(const float* __restrict__ x, float* __restrict__ y)
    {{
      int t = (int)threadIdx.x;
      y[t] = x[t == 5 ? {offset} : t];
    }}
    """
    raw = np.zeros(256, np.float32)
    with pytest.raises(PlaitError, match=rf"thread 5: reads out of bounds: element {offset} of x"):
        simulator(text, "k", 1, 64).launch("k", [raw[64:128], np.zeros(64, np.float32)])


@pytest.mark.parametrize("offset", [0, 1])
def test_vectors_are_aligned(offset: int) -> None:
    text = f"""
    struct __align__(16) four {{ float at[4]; }};
    extern "C" __global__ void k(const float* __restrict__ x, float* __restrict__ y)
    {{
      int t = (int)threadIdx.x;
      *(four*)&y[t * 4] = *(const four*)&x[t * 4 + {offset}];
    }}
    """
    raw = np.arange(128, dtype=np.float32)
    x, y = (raw[(-raw.ctypes.data % 16) // 4 :][:100] for raw in (raw, np.zeros_like(raw)))
    if offset:
        with pytest.raises(PlaitError, match="reads 16 bytes at once where they are not aligned"):
            simulator(text, "k", 1, 16).launch("k", [x, y])
    else:
        simulator(text, "k", 1, 16).launch("k", [x, y])
        np.testing.assert_array_equal(y[:64], x[:64])


def test_barrier_in_divergent_code() -> None:
    text = """
    extern "C" __global__ void k(const float* __restrict__ x, float* __restrict__ y)
    {
      int t = (int)threadIdx.x;
      if (t < 32) __syncthreads();
      y[t] = x[t];
    }
    """
    x, y = np.zeros(64, np.float32), np.zeros(64, np.float32)
    with pytest.raises(PlaitError, match="barrier in divergent code"):
        simulator(text, "k", 1, 64).launch("k", [x, y])


def test_two_barriers_are_not_one() -> None:
    text = """
    extern "C" __global__ void k(const float* __restrict__ x, float* __restrict__ y)
    {
      int t = (int)threadIdx.x;
      if (t < 32) {
        __syncthreads();
      } else {
        __syncthreads();
      }
      y[t] = x[t];
    }
    """
    x, y = np.zeros(64, np.float32), np.zeros(64, np.float32)
    with pytest.raises(PlaitError, match="barrier in divergent code"):
        simulator(text, "k", 1, 64).launch("k", [x, y])


def test_race_between_blocks() -> None:
    text = """
    extern "C" __global__ void k(const float* __restrict__ x, float* __restrict__ y)
    {
      y[threadIdx.x] = x[blockIdx.x];
    }
    """
    x, y = np.zeros(2, np.float32), np.zeros(32, np.float32)
    with pytest.raises(PlaitError, match=r"race.*element 0 of y.*block 0"):
        simulator(text, "k", 2, 32).launch("k", [x, y])


EXCHANGE = """
extern "C" __global__ void k(const float* __restrict__ x, float* __restrict__ y)
{
  __shared__ float s[64];
  int t = (int)threadIdx.x;
  s[t] = x[t];
  SYNC
  y[t] = s[t ^ MASK] + __shfl_xor_sync(0xffffffffu, x[t], 1);
  AGAIN
  s[t] = y[t];
}
"""


def exchange(sync: str, mask: int, again: str) -> None:
    text = EXCHANGE.replace("SYNC", sync).replace("MASK", str(mask)).replace("AGAIN", again)
    x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    simulator(text, "k", 1, 64).launch("k", [x, y])
    np.testing.assert_array_equal(y, x[np.arange(64) ^ mask] + x[np.arange(64) ^ 1])


def test_a_barrier_of_a_warp_orders_its_lanes() -> None:
    exchange("__syncwarp();", 5, "__syncwarp();")


@pytest.mark.parametrize(
    ("sync", "mask", "again"),
    [
        ("", 5, "__syncwarp();"),
        ("__syncwarp();", 5, ""),
        ("__syncwarp();", 37, "__syncwarp();"),
        ("__syncthreads();", 37, "__syncwarp();"),
        ("__shfl_sync(0xffffffffu, t, 0);", 5, "__syncwarp();"),
    ],
)
def test_a_barrier_of_a_warp_orders_nothing_else(sync: str, mask: int, again: str) -> None:
    with pytest.raises(PlaitError, match=r"race|before it is written"):
        exchange(sync, mask, again)


def total(**changes: str) -> float:
    """A sum over blocks whose last one combines what all have written."""
    text = TOTAL
    for word, code in {**SOUND, **changes}.items():
        text = text.replace(word, code)
    kernel = Kernel("total", (4, 1, 1), (64, 1, 1), ("x", "y", "partial", "tickets"))
    x, y, partial = np.arange(4, dtype=np.float32), np.zeros(1, np.float32), np.ones(4, np.float32)
    tickets = np.zeros(4, np.int32)
    run = Simulator(text, [kernel])
    for _ in range(2):
        run.launch("total", [x, y, partial, tickets])
    assert not tickets.any()
    return float(y[0])


@pytest.mark.parametrize("changes", [{}, {"WRITER": "40", "BARRIER": "__syncthreads();"}])
def test_the_last_block_sees_what_all_wrote(changes: dict[str, str]) -> None:
    assert total(**changes) == 10


@pytest.mark.parametrize(
    "changes",
    [
        {"RELEASE": ""},
        {"ACQUIRE": ""},
        {"RELEASE": "", "ACQUIRE": ""},
        {"WRITER": "40"},
        {"TICKET": "atomicAdd(&tickets[block], 1)", "LAST": "0"},
        {"LAST": "2"},
    ],
    ids=str,
)
def test_a_ticket_without_its_fences(changes: dict[str, str]) -> None:
    with pytest.raises(PlaitError, match=r"race.*of partial"):
        total(**changes)


def test_a_counter_that_is_not_changed_at_once() -> None:
    with pytest.raises(PlaitError, match=r"race.*of tickets"):
        total(TICKET="tickets[0]++")


def test_text_that_does_not_compile() -> None:
    with pytest.raises(PlaitError, match="do not compile"):
        simulator('extern "C" __global__ void k(float* x) { x[0] = nonsense; }', "k", 1, 1)


def test_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(PlaitError, match="needs a C\\+\\+ compiler"):
        simulator('extern "C" __global__ void k(float* x) { x[0] = 1.5f; }', "k", 1, 1)


def test_half_precision_matches_numpy() -> None:
    text = """
    #include <cuda_fp16.h>
    extern "C" __global__ void k(const __half* __restrict__ x, __half* __restrict__ y)
    {
      int t = (int)(blockIdx.x * 256 + threadIdx.x);
      y[t] = __float2half_rn(__half2float(x[t]) * 1.5f);
    }
    """
    x = np.arange(65536, dtype=np.uint16).view(np.float16)
    y = np.zeros_like(x)
    with np.errstate(all="ignore"):
        want = (x.astype(np.float32) * np.float32(1.5)).astype(np.float16)
    simulator(text, "k", 256, 256).launch("k", [x, y])
    np.testing.assert_array_equal(y, want)
