"""CUDA C to a cubin, through nvcc or else NVRTC, kept on disk by content and architecture."""

from __future__ import annotations

import ctypes
import glob
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from plait.errors import PlaitError
from plait.runtime.cache import kept

NVRTC_HEADER = """\
#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
#endif
"""
"""What nvcc includes by itself, and NVRTC does not."""


class Compiler(Protocol):
    """A compiler of CUDA C."""

    identity: str
    """Its name and version: another one has other cache entries."""

    def compile(self, text: str, arch: str) -> bytes:
        """A cubin; raises :class:`PlaitError` with the first error."""
        ...


class Nvcc:
    """The compiler driver of the CUDA toolkit."""

    def __init__(self, path: str):
        self.path = path
        done = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
        self.identity = f"nvcc {done.stdout}"

    def compile(self, text: str, arch: str) -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            source, target = Path(folder) / "kernels.cu", Path(folder) / "kernels.cubin"
            source.write_text(text)
            command = [self.path, "-cubin", f"-arch={arch}", "-o", str(target), str(source)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode or not target.exists():
                raise failure(done.stderr or done.stdout, "nvcc")
            return target.read_bytes()


class Nvrtc:
    """The compiler library that comes with the driver's packages, called through ``ctypes``."""

    def __init__(self, library: Any, path: str):
        self.library = library
        self.includes = include_folders(path)
        major, minor = ctypes.c_int(), ctypes.c_int()
        library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
        self.identity = f"nvrtc {major.value}.{minor.value}"

    def compile(self, text: str, arch: str) -> bytes:
        program = ctypes.c_void_p()
        source = (NVRTC_HEADER + text).encode()
        self.call("CreateProgram", ctypes.byref(program), source, b"kernels.cu", 0, None, None)
        try:
            options = [f"-arch={arch}".encode(), *(f"-I{path}".encode() for path in self.includes)]
            given = (ctypes.c_char_p * len(options))(*options)
            if self.library.nvrtcCompileProgram(program, len(options), given):
                raise failure(self.fetch(program, "ProgramLog").decode(errors="replace"), "nvrtc")
            return self.fetch(program, "CUBIN")
        finally:
            self.library.nvrtcDestroyProgram(ctypes.byref(program))

    def fetch(self, program: ctypes.c_void_p, what: str) -> bytes:
        """The log or the code of a program."""
        size = ctypes.c_size_t()
        self.call(f"Get{what}Size", program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        self.call(f"Get{what}", program, buffer)
        return buffer.raw

    def call(self, name: str, *arguments: Any) -> None:
        code = getattr(self.library, f"nvrtc{name}")(*arguments)
        if code:
            raise PlaitError(f"the cuda backend: nvrtc{name} failed with code {code}")


def failure(log: str, compiler: str) -> PlaitError:
    """What a compiler's first error says, in one line."""
    lines = [line for line in log.splitlines() if re.search(r"\b(error|fatal)\b", line)]
    line = (lines or log.strip().splitlines() or ["no message"])[0].strip()
    return PlaitError(f"the cuda backend cannot compile its kernels: {compiler}: {line}")


def packaged(pattern: str) -> list[str]:
    """Files of NVIDIA's Python packages."""
    spec = importlib.util.find_spec("nvidia")
    folders = list(spec.submodule_search_locations or ()) if spec else []
    return [name for folder in folders for name in sorted(glob.glob(f"{folder}/{pattern}"))]


def include_folders(library: str) -> list[str]:
    """Where ``cuda_fp16.h`` is: beside the library, in NVIDIA's packages, or in ``CUDA_HOME``."""
    home = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH") or "/usr/local/cuda"
    beside = Path(library).parent.parent / "include"
    headers = [str(beside / "cuda_fp16.h"), *packaged("*/include/cuda_fp16.h")]
    headers.append(f"{home}/include/cuda_fp16.h")
    return [str(Path(header).parent) for header in headers if Path(header).exists()][:1]


def find_nvrtc() -> Nvrtc | None:
    """NVRTC from the loader's path or NVIDIA's Python packages."""
    names = [f"libnvrtc.so{end}" for end in (".13", ".12", ".11.2", "")]
    for name in (*names, *packaged("*/lib/libnvrtc.so.*")):
        try:
            return Nvrtc(ctypes.CDLL(name), name)
        except (OSError, AttributeError):
            continue
    return None


@cache
def compiler() -> Compiler:
    """The compiler to use: ``NVCC``, nvcc of ``PATH`` or of ``CUDA_HOME``, or NVRTC."""
    home = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH") or "/usr/local/cuda"
    for name in (os.environ.get("NVCC"), "nvcc", f"{home}/bin/nvcc"):
        if name and (found := shutil.which(name)):
            return Nvcc(found)
    if found := find_nvrtc():
        return found
    raise PlaitError(
        "the cuda backend needs a compiler: install the CUDA toolkit (nvcc), or NVRTC with "
        "pip install nvidia-cuda-nvrtc nvidia-cuda-runtime"
    )


def cubin(text: str, capability: Sequence[int]) -> bytes:
    """The code of a CUDA C text for a compute capability (major, minor)."""
    arch = "sm_" + "".join(map(str, capability))
    chosen = compiler()
    key = f"{chosen.identity}\0{arch}\0{text}".encode()
    return kept("cuda", key, lambda: chosen.compile(text, arch))
