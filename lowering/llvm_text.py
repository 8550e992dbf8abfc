"""A growing LLVM function body: fresh names, blocks, and the helpers the body needs."""

from __future__ import annotations

from dataclasses import dataclass, field

from plait.lowering.llvm_types import splat, suffix, vector


@dataclass(frozen=True)
class CpuFeatures:
    """What the printed code may assume of the machine."""

    half_conversion: bool = False
    """f16 and f32 convert in hardware (x86 F16C, any AArch64)."""


@dataclass
class ModuleText:
    """The module around the functions: declarations and helper functions, each once."""

    features: CpuFeatures = field(default_factory=CpuFeatures)
    declarations: dict[str, str] = field(default_factory=dict[str, str])
    helpers: dict[str, str] = field(default_factory=dict[str, str])
    globals: dict[str, str] = field(default_factory=dict[str, str])

    def declare(self, name: str, result: str, params: list[str]) -> None:
        """Declares an external function or intrinsic."""
        if name not in self.declarations and name not in self.helpers:
            self.declarations[name] = f"declare {result} @{name}({', '.join(params)})"

    def __str__(self) -> str:
        parts = [*self.globals.values(), *self.helpers.values(), *self.declarations.values()]
        return "\n".join(parts) + "\n"


@dataclass
class Body:
    """Lines of one function under construction."""

    module: ModuleText
    lines: list[str] = field(default_factory=list[str])
    counter: int = 0
    block: str = "entry"

    def fresh(self) -> str:
        """A new local name."""
        self.counter += 1
        return f"%v{self.counter}"

    def label(self, stem: str) -> str:
        """A new block name."""
        self.counter += 1
        return f"{stem}{self.counter}"

    def emit(self, text: str) -> str:
        """Appends an instruction with a result; returns its name."""
        name = self.fresh()
        self.lines.append(f"  {name} = {text}")
        return name

    def do(self, text: str) -> None:
        """Appends an instruction without a result."""
        self.lines.append(f"  {text}")

    def start(self, label: str) -> None:
        """Starts block ``label``."""
        self.lines.append(f"{label}:")
        self.block = label

    def call(self, name: str, result: str, args: list[tuple[str, str]]) -> str:
        """Calls ``name`` with ``(type, value)`` arguments, declaring it."""
        self.module.declare(name, result, [type for type, _ in args])
        given = ", ".join(f"{type} {value}" for type, value in args)
        return self.emit(f"call {result} @{name}({given})")

    def intrinsic(self, name: str, spelled: str, lanes: int, args: list[str]) -> str:
        """An intrinsic overloaded on one type that all arguments and the result have."""
        type = vector(spelled, lanes)
        return self.call(f"llvm.{name}.{suffix(spelled, lanes)}", type, [(type, a) for a in args])

    def splat_value(self, spelled: str, value: str, lanes: int) -> str:
        """``value`` in every lane; a literal stays a literal."""
        if lanes == 1:
            return value
        if not value.startswith("%"):
            return splat(spelled, value, lanes)
        type = vector(spelled, lanes)
        one = self.emit(f"insertelement {type} poison, {spelled} {value}, i32 0")
        return self.emit(
            f"shufflevector {type} {one}, {type} poison, <{lanes} x i32> zeroinitializer"
        )
