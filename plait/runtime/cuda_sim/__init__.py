"""``cuda-sim``: CUDA C on the CPU, thread by thread, for tests.

The text of the kernels is compiled unchanged by a C++ compiler. Blocks run one after another;
the threads of a block are fibers that switch at barriers and shuffles. Every access is checked:
bounds, alignment, races between barriers and between blocks (unless fences around changes of a
counter order them), barriers that not all threads reach.
"""

from plait.runtime.cuda_sim.plan import CompiledPlan, Kernel, Simulator

__all__ = ["CompiledPlan", "Kernel", "Simulator"]
