"""Evaluates a conformance graph with numpy alone, node by node: an oracle that shares no code with
plait. Floats are computed in float64 whatever their declared type."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Node = Mapping[str, Any]
Array = NDArray[Any]

_DTYPES = {
    "bool": np.bool_,
    **{f"i{w}": np.dtype(f"int{w}") for w in (8, 16, 32, 64)},
    **{f"u{w}": np.dtype(f"uint{w}") for w in (8, 16, 32, 64)},
    **dict.fromkeys(("f16", "bf16", "f32", "f64", "weakfloat"), np.float64),
    "weakint": np.int64,
}
_WORDS = {"inf": np.inf, "-inf": -np.inf, "nan": np.nan, "invalid": 0}

_ARITHMETIC: dict[str, Callable[..., Array]] = {
    "exp2": np.exp2,
    "log2": np.log2,
    "sin": np.sin,
    "sqrt": np.sqrt,
    "recip": lambda a: 1.0 / a,
    "neg": np.negative,
    "trunc": np.trunc,
    "add": lambda a, b: a | b if a.dtype == bool else a + b,
    "sub": np.subtract,
    "mul": lambda a, b: a & b if a.dtype == bool else a * b,
    "fdiv": np.divide,
    "max": np.maximum,
    "xor": np.bitwise_xor,
    "or": np.bitwise_or,
    "and": np.bitwise_and,
    "shl": np.left_shift,
    "shr": np.right_shift,
    "pow": np.power,
    "cdiv": lambda a, b: np.trunc(a / b),
    "cmod": np.fmod,
    "floordiv": np.floor_divide,
    "floormod": np.mod,
    "mulacc": lambda a, b, c: a * b + c,
}
_COMPARE: dict[str, Callable[[Array, Array], Array]] = {
    "lt": np.less,
    "eq": np.equal,
    "ne": np.not_equal,
}
_REDUCE = {"add": np.add, "mul": np.multiply, "max": np.maximum}
_REDUCE_BOOL = {"add": np.logical_or, "mul": np.logical_and, "max": np.logical_or}


def buffers(nodes: Sequence[Node], seed: int = 0) -> dict[int, Array]:
    """Contents for every input node: its recorded data, or small random numbers."""
    random = np.random.default_rng(seed)
    contents: dict[int, Array] = {}
    for position, node in enumerate(nodes):
        if node["op"] != "input":
            continue
        dtype, shape = np.dtype(_DTYPES[node["dt"]]), tuple(node["sh"])
        if "data" in node:
            contents[position] = np.asarray(node["data"]).astype(dtype).reshape(shape)
        elif dtype.kind == "f":
            exact = np.float16 if node["dt"] in ("f16", "bf16") else np.float32
            values = random.uniform(0.25, 1.5, shape) * random.choice((-1, 1), shape)
            if node["dt"] == "bf16":
                values = np.round(values * 64) / 64
            contents[position] = values.astype(exact).astype(dtype)
        else:
            contents[position] = random.integers(0, 2 if dtype.kind == "b" else 4, shape).astype(
                dtype
            )
    return contents


def evaluate(
    nodes: Sequence[Node], outputs: Sequence[int], contents: Mapping[int, Array]
) -> tuple[list[Array], dict[int, Array]]:
    """The graph's outputs, and what each buffer that is stored to holds in the end."""
    with np.errstate(all="ignore"):
        values: list[Array] = []
        for position in range(len(nodes)):
            values.append(_value(position, nodes, values, contents))
        final = _final(nodes, values, contents)
    return [values[position] for position in outputs], final


def _value(
    position: int, nodes: Sequence[Node], values: list[Array], contents: Mapping[int, Array]
) -> Array:
    node = nodes[position]
    sources = [values[source] for source in node.get("in", ())]
    dtype, op = _DTYPES.get(node["dt"]), node["op"]
    if op == "input":
        return contents[position]
    if op == "const":
        word = node["value"]
        scalar = _WORDS[word] if isinstance(word, str) else word
        return np.broadcast_to(np.asarray(scalar).astype(dtype), node["sh"])
    if op == "store":
        return sources[0]
    if op == "after":
        return _after(node, nodes, values)
    if op in _COMPARE:
        return _COMPARE[op](*_common(node, nodes, sources))
    if op in _ARITHMETIC:
        return np.asarray(_ARITHMETIC[op](*(s.astype(dtype) for s in sources))).astype(dtype)
    if op == "where":
        return np.where(sources[0], sources[1], sources[2]).astype(dtype)
    if op == "cast":
        return sources[0].astype(dtype)
    if op == "bitcast":
        narrow = {"f16": np.float16, "f32": np.float32, "f64": np.float64}
        have, want = nodes[node["in"][0]]["dt"], node["dt"]
        raw = sources[0].astype(narrow.get(have, sources[0].dtype))
        return raw.view(narrow.get(want, dtype)).astype(dtype)
    if op == "reduce":
        table = _REDUCE_BOOL if sources[0].dtype == bool else _REDUCE
        return np.asarray(
            table[node["fn"]].reduce(sources[0], axis=tuple(node["axes"]), dtype=dtype)
            if sources[0].size or node["fn"] != "max"
            else np.full(node["sh"], -np.inf if dtype == np.float64 else np.iinfo(dtype).min)
        )
    if op == "stack":
        return np.stack([np.broadcast_to(s, node["sh"][1:]) for s in sources]).astype(dtype)
    return _view(node, sources[0])


def _common(node: Node, nodes: Sequence[Node], sources: list[Array]) -> list[Array]:
    """Operands of a comparison: untyped literals take the other side's type."""
    names = [nodes[source]["dt"] for source in node["in"]]
    strong = [_DTYPES[name] for name in names if not name.startswith("weak")]
    if not strong or "weakfloat" in names:
        return sources
    dtype = np.result_type(*strong)
    return [source.astype(dtype) for source in sources]


def _view(node: Node, value: Array) -> Array:
    match node["op"]:
        case "reshape":
            return value.reshape(node["sh"])
        case "expand":
            return np.broadcast_to(value, node["sh"])
        case "permute":
            return value.transpose(node["perm"])
        case "flip":
            return np.flip(value, tuple(node["axes"]))
        case "shrink":
            return value[tuple(slice(*bound) for bound in node["bounds"])]
        case "pad":
            return np.pad(value, node["pads"]) if node["pads"] else value
        case "contiguous" | "contiguous_backward" | "detach" | "copy":
            return value
        case op:
            raise NotImplementedError(f"the oracle does not know '{op}'")


def _chain(position: int, nodes: Sequence[Node]) -> tuple[int, list[int]]:
    """The node whose storage a view shows, and the views over it from the root outwards."""
    chain: list[int] = []
    views = ("reshape", "permute", "flip", "shrink", "contiguous_backward", "detach")
    while nodes[position]["op"] in (*views, "after"):
        if nodes[position]["op"] != "after":
            chain.append(position)
        position = nodes[position]["in"][0]
    return position, chain[::-1]


def _positions(root: int, chain: list[int], nodes: Sequence[Node]) -> Array:
    """For each element of a view, its position in the flat root."""
    shape = nodes[root]["sh"]
    positions: Array = np.arange(int(np.prod(shape, dtype=int))).reshape(shape)
    for link in chain:
        positions = _view(nodes[link], positions)
    return positions


def _stores(position: int, nodes: Sequence[Node]) -> list[int]:
    """Every store that has run once a value is there, in order."""
    found: set[int] = set()
    seen: set[int] = set()
    pending = [position]
    while pending:
        current = pending.pop()
        if current in seen:
            continue
        seen.add(current)
        node = nodes[current]
        if node["op"] == "store":
            found.add(current)
            pending.append(node["in"][0])
        elif node["op"] == "after":
            pending.extend(node["in"])
        elif node["op"] in ("reshape", "permute", "flip", "shrink", "detach"):
            pending.append(node["in"][0])
    return sorted(found)


def _write(flat: Array, root: int, store: Node, nodes: Sequence[Node], values: list[Array]) -> None:
    target, value = store["in"]
    owner, chain = _chain(target, nodes)
    source = value
    while nodes[source]["op"] in ("cast", "expand", "reshape"):
        source = nodes[source]["in"][0]
    if owner == root and nodes[source].get("value") != "invalid":
        positions = _positions(root, chain, nodes)
        flat[positions] = np.broadcast_to(values[value].astype(flat.dtype), positions.shape)


def _after(node: Node, nodes: Sequence[Node], values: list[Array]) -> Array:
    root, chain = _chain(node["in"][0], nodes)
    flat = values[root].astype(values[root].dtype).reshape(-1).copy()
    stores = {store for source in node["in"] for store in _stores(source, nodes)}
    for store in sorted(stores):
        _write(flat, root, nodes[store], nodes, values)
    return flat[_positions(root, chain, nodes)]


def _final(
    nodes: Sequence[Node], values: list[Array], contents: Mapping[int, Array]
) -> dict[int, Array]:
    final: dict[int, Array] = {}
    for node in nodes:
        if node["op"] != "store":
            continue
        root, _ = _chain(node["in"][0], nodes)
        if root not in contents:
            continue
        flat = final.setdefault(root, contents[root].reshape(-1).copy())
        _write(flat, root, node, nodes, values)
    return {root: flat.reshape(contents[root].shape) for root, flat in final.items()}
