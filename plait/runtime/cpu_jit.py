"""LLVM IR text to callable machine code in this process, with object code cached on disk.

The cache key is the text, the machine's CPU name and features and the LLVM version. Entries live
under ``$PLAIT_CACHE_DIR`` or the user's cache directory; they are written to a temporary file and
renamed, and one that does not load is rebuilt.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import sys
import tempfile
import threading
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from plait.lowering.llvm_text import CpuFeatures

_lock = threading.Lock()
_FORMAT = b"plait-object-1\n"


@cache
def _binding() -> Any:
    """llvmlite's binding, set up for this machine."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


def process_triple() -> str:
    """The target triple of this process."""
    return _binding().get_process_triple()


@cache
def host_features() -> CpuFeatures:
    """What code for this machine may assume."""
    llvm = _binding()
    arm = process_triple().startswith(("aarch64", "arm64"))
    return CpuFeatures(half_conversion=arm or bool(llvm.get_host_cpu_features().get("f16c")))


@cache
def vector_bytes() -> int:
    """The width of the machine's vector registers, in bytes."""
    found = _binding().get_host_cpu_features()
    if found.get("avx512f"):
        return 64
    return 32 if found.get("avx2") else 16


@cache
def _machine_key() -> bytes:
    llvm = _binding()
    version = ".".join(map(str, llvm.llvm_version_info))
    features = llvm.get_host_cpu_features().flatten()
    parts = (llvm.get_process_triple(), llvm.get_host_cpu_name(), features, version, "O3-2")
    return "\n".join(parts).encode()


def cache_directory() -> Path | None:
    """Where object code is kept; None when ``PLAIT_CACHE_DIR`` is set empty."""
    chosen = os.environ.get("PLAIT_CACHE_DIR")
    if chosen is not None:
        return Path(chosen) if chosen else None
    if sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    elif sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", str(Path.home())))
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache")))
    return base / "plait" / "llvm"


def _read_cache(path: Path) -> bytes | None:
    try:
        content = path.read_bytes()
    except OSError:
        return None
    head, digest, code = content[:15], content[15:47], content[47:]
    if head != _FORMAT or hashlib.sha256(code).digest() != digest:
        return None
    return code


def _write_cache(path: Path, code: bytes) -> None:
    """Atomic, and never an error: a cache that cannot be written is no cache."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_FORMAT + hashlib.sha256(code).digest() + code)
            os.replace(temporary, path)
        except OSError:
            Path(temporary).unlink(missing_ok=True)
    except OSError:
        return


def optimize(text: str) -> tuple[Any, Any]:
    """Parses ``text`` once and runs the O3 pipeline; returns (module, target machine)."""
    llvm = _binding()
    target = llvm.Target.from_triple(llvm.get_process_triple())
    machine = target.create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=3,
        reloc="pic",
        codemodel="small",
    )
    module = llvm.parse_assembly(text)
    module.triple = llvm.get_process_triple()
    module.data_layout = str(machine.target_data)
    module.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = True
    options.slp_vectorization = False
    options.loop_interleaving = True
    options.loop_unrolling = False
    builder = llvm.create_pass_builder(machine, options)
    manager = builder.getModulePassManager()
    manager.run(module, builder)
    return module, machine


def compile_object(text: str) -> bytes:
    """The object file for ``text``, from the cache or built."""
    directory = cache_directory()
    path: Path | None = None
    if directory is not None:
        key = hashlib.sha256(_machine_key() + b"\0" + text.encode()).hexdigest()
        path = directory / f"{key}.o"
        found = _read_cache(path)
        if found is not None:
            return found
    with _lock:
        module, machine = optimize(text)
        code: bytes = machine.emit_object(module)
    if path is not None:
        _write_cache(path, code)
    return code


@dataclass
class Library:
    """Loaded machine code; holds it in memory as long as the object lives."""

    addresses: dict[str, int]
    _keep: tuple[Any, ...]

    def address(self, name: str) -> int:
        """The address of an exported function."""
        return self.addresses[name]

    def function(self, name: str, *types: Any) -> Any:
        """A ctypes function returning nothing; calls release the GIL."""
        return ctypes.CFUNCTYPE(None, *types)(self.addresses[name])


_counter = 0


def load(text: str, exports: list[str]) -> Library:
    """Compiles (or finds) and loads ``text``; ``exports`` are the functions wanted from it."""
    global _counter
    code = compile_object(text)
    llvm = _binding()
    with _lock:
        _counter += 1
        jit = llvm.create_lljit_compiler(use_jit_link=False)
        builder = llvm.JITLibraryBuilder().add_object_img(code).add_current_process()
        for name in exports:
            builder.export_symbol(name)
        tracker = builder.link(jit, f"plait{_counter}")
        addresses = {name: int(tracker[name]) for name in exports}
    return Library(addresses, (jit, tracker))
