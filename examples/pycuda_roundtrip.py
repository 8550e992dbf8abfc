"""A PyCUDA program hands its array to a fused plan, in its own stream, and uses the result.

python examples/pycuda_roundtrip.py
"""

import numpy as np
import pycuda.driver as cuda
from pycuda import gpuarray

import plait


def main() -> None:
    """Softmax over rows: one kernel, nothing copied between host and device by plait."""
    plan = plait.schedule(plait.empty(64, 256, name="x").softmax(-1))
    host = np.random.default_rng(0).standard_normal((64, 256)).astype(np.float32)

    cuda.init()
    context = cuda.Device(0).make_context()
    try:
        stream = cuda.Stream()
        x = gpuarray.to_gpu_async(host, stream=stream)
        [y] = plan.run(x, backend="cuda", stream=stream)
        stream.synchronize()
        [want] = plan.run(host, backend="numpy")
        print(f"{len(plan.kernels)} kernel, largest error {np.abs(y.get() - want).max():.1e}")
    finally:
        context.pop()


if __name__ == "__main__":
    main()
