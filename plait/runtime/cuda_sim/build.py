"""Builds kernels for the simulator: a shared library per text, kept on disk."""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from plait.errors import PlaitError
from plait.runtime.cache import cache_folder, write_whole

HERE = Path(__file__).parent
FLAGS = ("-std=c++17", "-fPIC", "-w", "-pthread", f"-I{HERE / 'include'}")
INSTRUMENTED = ("-fsanitize=thread", "--param", "tsan-instrument-func-entry-exit=0")


def compiler() -> str:
    """The C++ compiler: ``CXX``, g++ or clang++."""
    for name in (os.environ.get("CXX"), "g++", "clang++"):
        if name and (found := shutil.which(name)):
            return found
    raise PlaitError("cuda-sim needs a C++ compiler: install g++, or set CXX to one")


def sources_digest() -> bytes:
    """What the runtime and its headers are, so that a change of them builds anew."""
    digest = hashlib.sha256()
    for path in sorted([HERE / "sim.cpp", *(HERE / "include").iterdir()]):
        digest.update(path.read_bytes())
    return digest.digest()


def library(text: str, kernels: Sequence[str], check: bool) -> ctypes.CDLL:
    """The library of a CUDA C text, with a ``plait_call_NAME(void**)`` for each kernel."""
    path = built(text, kernels, check)
    try:
        return ctypes.CDLL(str(path))
    except OSError:
        path.unlink(missing_ok=True)
    return ctypes.CDLL(str(built(text, kernels, check)))


def built(text: str, kernels: Sequence[str], check: bool) -> Path:
    """Where the library of a text is kept, built if it is not there."""
    cxx, program = compiler(), program_of(text, kernels)
    digest = hashlib.sha256(sources_digest())
    digest.update(f"{cxx}\0{check}\0{program}".encode())
    path = cache_folder("cuda-sim") / f"{digest.hexdigest()[:32]}.so"
    if not path.exists():
        build(cxx, program, path, check)
    return path


def program_of(text: str, kernels: Sequence[str]) -> str:
    """A CUDA C text as C++, with a call of each kernel."""
    calls = "".join(
        f'extern "C" PLAIT_QUIET void plait_call_{name}(void **a) {{ plait_apply({name}, a); }}\n'
        for name in kernels
    )
    return f'#include "plait_cuda_sim.h"\n#line 1 "kernels.cu"\n{text}\n{calls}'


def build(cxx: str, program: str, path: Path, check: bool) -> None:
    """Compiles to ``path``, whole or not at all."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            source, target = Path(folder) / "kernels.cpp", Path(folder) / "kernels.so"
            source.write_text(program)
            kernels, runtime = Path(folder) / "kernels.o", runtime_object(cxx, Path(folder))
            extra = INSTRUMENTED if check else ("-O2",)
            run([cxx, *FLAGS, "-O1", *extra, "-c", str(source), "-o", str(kernels)])
            run([cxx, "-shared", str(kernels), str(runtime), "-o", str(target), "-lm"])
            os.replace(target, path)
    except OSError as error:
        raise PlaitError(f"cuda-sim cannot build in {path.parent}: {error.strerror}") from None


def runtime_object(cxx: str, folder: Path) -> Path:
    """The compiled runtime, the same for all kernels; built in ``folder`` if it is not kept yet."""
    name = hashlib.sha256(sources_digest() + cxx.encode()).hexdigest()[:32]
    path = cache_folder("cuda-sim") / f"{name}.o"
    if not path.exists():
        built = folder / "sim.o"
        run([cxx, *FLAGS, "-O2", "-c", str(HERE / "sim.cpp"), "-o", str(built)])
        write_whole(path, built.read_bytes())
    return path


def run(command: Sequence[str]) -> None:
    """Runs the compiler; its first error becomes the message."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if "error" in line] or [done.stderr]
        raise PlaitError(f"cuda-sim: the kernels do not compile: {lines[0].strip()}")
