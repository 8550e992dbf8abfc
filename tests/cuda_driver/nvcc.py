"""Stands for nvcc: the "cubin" it writes is the kernels' text, built by the kernel simulator."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

from plait.errors import PlaitError
from plait.runtime.cuda_sim.build import built


def main(arguments: list[str]) -> int:
    """``-cubin -arch=ARCH -o TARGET SOURCE``, or ``--version``."""
    if "--version" in arguments:
        print("simulated nvcc")
        return 0
    if os.environ.get("PLAIT_DRIVER_FAIL_COMPILE"):
        print("kernels.cu(1): error: the compiler was told to fail", file=sys.stderr)
        return 2
    target, text = Path(arguments[arguments.index("-o") + 1]), Path(arguments[-1]).read_text()
    kernels = re.findall(r"__global__[^;{]*?(\w+)\s*\((?!\d+\))", text)
    try:
        shutil.copyfile(built(text, kernels, check=True), target)
    except PlaitError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
