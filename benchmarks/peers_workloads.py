"""The programs `peers.py` times, each written once for every framework.

A workload has a forward function per framework over the same arrays. With ``wrt``, its gradients
with respect to those inputs follow, the last array being the gradient that arrives at the output.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = Any
Forward = Callable[..., Any]


@dataclass
class Workload:
    """One program and its data."""

    name: str
    shapes: dict[str, tuple[int, ...]]
    """The shape of each input."""
    plait: Forward
    torch: Forward
    jax: Forward
    tinygrad: Forward
    numpy: Forward | None = None
    wrt: tuple[str, ...] = ()
    """Inputs to differentiate by; empty for a forward pass alone."""
    classes: dict[str, int] = field(default_factory=dict[str, int])
    """Inputs that are class numbers, and how many classes there are."""
    positive: tuple[str, ...] = ()
    tolerance: float = 2e-4
    """Largest error allowed, relative to the largest element of a result."""

    def data(self, rng: np.random.Generator) -> list[Array]:
        """An array for each input."""
        found: list[Array] = []
        for name, shape in self.shapes.items():
            if name in self.classes:
                found.append(rng.integers(0, self.classes[name], shape, dtype=np.int64))
                continue
            fan = math.prod(shape[1:]) if name.startswith("w") and len(shape) > 1 else 1
            value = (rng.standard_normal(shape) / math.sqrt(fan)).astype(np.float32)
            found.append(np.abs(value) if name in self.positive else value)
        return found


def _plait() -> Any:
    from plait.nn import functional

    return functional


def _torch() -> Any:
    from torch.nn import functional

    return functional


def _jax() -> tuple[Any, Any]:
    import jax
    import jax.numpy

    return jax, jax.numpy


# -- norms, convolutions ---------------------------------------------------------------------


def _bn_jax(x: Any, w: Any, b: Any) -> Any:
    jax, jnp = _jax()
    shape = (1, -1, 1, 1)
    centred = x - x.mean((0, 2, 3), keepdims=True)
    variance = (centred * centred).mean((0, 2, 3), keepdims=True)
    scaled = centred * jax.lax.rsqrt(variance + 1e-5)
    return jnp.maximum(scaled * w.reshape(shape) + b.reshape(shape), 0)


def _bn_tiny(x: Any, w: Any, b: Any) -> Any:
    mean = x.mean((0, 2, 3))
    variance = ((x - mean.reshape(1, -1, 1, 1)) ** 2).mean((0, 2, 3))
    return x.batchnorm(w, b, mean, (variance + 1e-5).rsqrt()).relu()


def _bn_plait(x: Any, w: Any, b: Any) -> Any:
    return _plait().batch_norm(x, weight=w, bias=b, training=True).relu()


def _bn_torch(x: Any, w: Any, b: Any) -> Any:
    return _torch().batch_norm(x, None, None, w, b, training=True).relu()


def _bn_numpy(x: Array, w: Array, b: Array) -> Array:
    mean = x.mean((0, 2, 3), keepdims=True)
    centred = x - mean
    scaled = centred / np.sqrt((centred * centred).mean((0, 2, 3), keepdims=True) + 1e-5)
    return np.maximum(scaled * w.reshape(1, -1, 1, 1) + b.reshape(1, -1, 1, 1), 0)


def _conv_jax(x: Any, w: Any) -> Any:
    jax, _ = _jax()
    return jax.lax.conv(x, w, (1, 1), "SAME")


def _conv_bn(norm: Forward, conv: Forward) -> Forward:
    return lambda x, wc, w, b: norm(conv(x, wc), w, b)


def _block_plait(x: Any, wa: Any, g1: Any, b1: Any, wb: Any, g2: Any, b2: Any) -> Any:
    f = _plait()
    h = f.batch_norm(f.conv2d(x, wa, padding=1), weight=g1, bias=b1, training=True).relu()
    h = f.batch_norm(f.conv2d(h, wb, padding=1), weight=g2, bias=b2, training=True)
    return (h + x).relu()


def _block_torch(x: Any, wa: Any, g1: Any, b1: Any, wb: Any, g2: Any, b2: Any) -> Any:
    f = _torch()
    h = f.batch_norm(f.conv2d(x, wa, padding=1), None, None, g1, b1, training=True).relu()
    h = f.batch_norm(f.conv2d(h, wb, padding=1), None, None, g2, b2, training=True)
    return (h + x).relu()


def _block_jax(x: Any, wa: Any, g1: Any, b1: Any, wb: Any, g2: Any, b2: Any) -> Any:
    jax, jnp = _jax()
    h = _bn_jax(_conv_jax(x, wa), g1, b1)
    h = _conv_jax(h, wb)
    centred = h - h.mean((0, 2, 3), keepdims=True)
    variance = (centred * centred).mean((0, 2, 3), keepdims=True)
    h = centred * jax.lax.rsqrt(variance + 1e-5) * g2.reshape(1, -1, 1, 1)
    return jnp.maximum(h + b2.reshape(1, -1, 1, 1) + x, 0)


def _block_tiny(x: Any, wa: Any, g1: Any, b1: Any, wb: Any, g2: Any, b2: Any) -> Any:
    h = _bn_tiny(x.conv2d(wa, padding=1), g1, b1).conv2d(wb, padding=1)
    mean = h.mean((0, 2, 3))
    variance = ((h - mean.reshape(1, -1, 1, 1)) ** 2).mean((0, 2, 3))
    return (h.batchnorm(g2, b2, mean, (variance + 1e-5).rsqrt()) + x).relu()


def _layer_jax(x: Any, w: Any, b: Any) -> Any:
    jax, _ = _jax()
    centred = x - x.mean(-1, keepdims=True)
    variance = (centred * centred).mean(-1, keepdims=True)
    return centred * jax.lax.rsqrt(variance + 1e-5) * w + b


def _layer_numpy(x: Array, w: Array, b: Array) -> Array:
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-5) * w + b


def _softmax_numpy(x: Array) -> Array:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


# -- losses, attention, products --------------------------------------------------------------


def _entropy_jax(x: Any, t: Any) -> Any:
    jax, jnp = _jax()
    log = jax.nn.log_softmax(x, -1)
    return -jnp.take_along_axis(log, t[:, None], 1).mean()


def _entropy_numpy(x: Array, t: Array) -> Array:
    top = x.max(-1, keepdims=True)
    log = np.log(np.exp(x - top).sum(-1)) + top[:, 0]
    return (log - x[np.arange(len(t)), t]).mean()


def _attention_jax(q: Any, k: Any, v: Any) -> Any:
    jax, jnp = _jax()
    scores = q @ jnp.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1])
    return jax.nn.softmax(scores, -1) @ v


def _attention_numpy(q: Array, k: Array, v: Array) -> Array:
    return _softmax_numpy(q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])) @ v


def _gelu(x: Any) -> Any:
    """The tanh form, in operators that every framework's tensors have."""
    return x * 0.5 * ((x * x * x * 0.044715 + x) * 0.7978845608028654).tanh() + x * 0.5


def _chain(x: Any, y: Any, b: Any) -> Any:
    """Bias, GELU, gate, residual: what is between the products of an MLP block."""
    return _gelu(x + b) * y + x


def _numpy_tanh(function: Forward) -> Forward:
    class Tanh(np.ndarray):
        def tanh(self) -> Any:
            return np.tanh(self)

    return lambda *arrays: np.asarray(function(*(array.view(Tanh) for array in arrays)))


def _jax_tanh(*arrays: Any) -> Any:
    _, jnp = _jax()
    x, y, b = arrays
    h = x + b
    h = h * 0.5 * jnp.tanh((h * h * h * 0.044715 + h) * 0.7978845608028654) + h * 0.5
    return h * y + x


def _product_jax(x: Any, w: Any, b: Any) -> Any:
    _, jnp = _jax()
    h = x @ w + b
    return h * 0.5 * jnp.tanh((h * h * h * 0.044715 + h) * 0.7978845608028654) + h * 0.5


def _product(x: Any, w: Any, b: Any) -> Any:
    return _gelu(x @ w + b)


def _swiglu(x: Any, s: Any, wg: Any, wu: Any) -> Any:
    """RMS norm, two products, SiLU gate."""
    h = x * ((x * x).mean(-1).reshape(-1, 1) + 1e-6).rsqrt() * s
    gate = h @ wg
    return gate * gate.sigmoid() * (h @ wu)


def _swiglu_jax(x: Any, s: Any, wg: Any, wu: Any) -> Any:
    jax, _ = _jax()
    h = x * jax.lax.rsqrt((x * x).mean(-1).reshape(-1, 1) + 1e-6) * s
    return jax.nn.silu(h @ wg) * (h @ wu)


def _swiglu_numpy(x: Array, s: Array, wg: Array, wu: Array) -> Array:
    h = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * s
    gate = h @ wg
    return gate / (1 + np.exp(-gate)) * (h @ wu)


# -- optimiser, reductions --------------------------------------------------------------------

_TENSORS = 10


def _adam(*arrays: Any) -> Sequence[Any]:
    """Step 1 of Adam, over 10 tensors: in operators that every framework's tensors have."""
    found: list[Any] = []
    for i in range(_TENSORS):
        p, g, m, v = arrays[4 * i : 4 * i + 4]
        m = m * 0.9 + g * 0.1
        v = v * 0.999 + g * g * 0.001
        p = p - m * (1e-3 / 0.1) / ((v * 1000.0) ** 0.5 + 1e-8)
        found += [p, m, v]
    return found


def _adam_plait(*arrays: Any) -> Sequence[Any]:
    found: list[Any] = []
    for i in range(_TENSORS):
        p, g, m, v = arrays[4 * i : 4 * i + 4]
        m = m * 0.9 + g * 0.1
        v = v * 0.999 + g * g * 0.001
        found += [p - m * (1e-3 / 0.1) / ((v * 1000.0).sqrt() + 1e-8), m, v]
    return found


def _adam_shapes() -> dict[str, tuple[int, ...]]:
    return {f"{name}{i}": (1_000_000,) for i in range(_TENSORS) for name in ("p", "g", "m", "v")}


def _stats(std: Callable[[Any], Any]) -> Forward:
    return lambda x: [x.mean(), std(x), x.max(), x.min()]


def _std_torch(x: Any) -> Any:
    return x.std(correction=0)


def _sums(x: Any) -> Sequence[Any]:
    return [x.sum(1), x.sum(0)]


_BN = {"x": (32, 64, 56, 56), "w": (64,), "b": (64,)}
_CONV = {"x": (16, 32, 32, 32), "wc": (32, 32, 3, 3), "w": (32,), "b": (32,)}
_BLOCK = {
    "x": (8, 64, 28, 28),
    "wa": (64, 64, 3, 3),
    "g1": (64,),
    "b1": (64,),
    "wb": (64, 64, 3, 3),
    "g2": (64,),
    "b2": (64,),
}
_ATTENTION = dict.fromkeys("qkv", (2, 8, 256, 64))


def _conv_plait(x: Any, w: Any) -> Any:
    return _plait().conv2d(x, w, padding=1)


def _conv_torch(x: Any, w: Any) -> Any:
    return _torch().conv2d(x, w, padding=1)


def _conv_tiny(x: Any, w: Any) -> Any:
    return x.conv2d(w, padding=1)


def _both(base: Workload, *wrt: str) -> list[Workload]:
    """The forward pass, and it with its gradients."""
    from dataclasses import replace

    return [base, replace(base, name=f"{base.name}-grad", wrt=wrt)]


WORKLOADS: list[Workload] = [
    *_both(
        Workload("batchnorm-relu", _BN, _bn_plait, _bn_torch, _bn_jax, _bn_tiny, _bn_numpy),
        "x",
        "w",
        "b",
    ),
    *_both(
        Workload(
            "conv-bn-relu",
            _CONV,
            _conv_bn(_bn_plait, _conv_plait),
            _conv_bn(_bn_torch, _conv_torch),
            _conv_bn(_bn_jax, _conv_jax),
            _conv_bn(_bn_tiny, _conv_tiny),
        ),
        "x",
        "wc",
        "w",
        "b",
    ),
    *_both(
        Workload(
            "layernorm",
            {"x": (4096, 1024), "w": (1024,), "b": (1024,)},
            lambda x, w, b: _plait().layer_norm(x, 1024, w, b),
            lambda x, w, b: _torch().layer_norm(x, (1024,), w, b),
            _layer_jax,
            lambda x, w, b: x.layernorm() * w + b,
            _layer_numpy,
        ),
        "x",
        "w",
        "b",
    ),
    *_both(
        Workload(
            "softmax",
            {"x": (4096, 1024)},
            lambda x: x.softmax(-1),
            lambda x: x.softmax(-1),
            lambda x: _jax()[0].nn.softmax(x, -1),
            lambda x: x.softmax(-1),
            _softmax_numpy,
        ),
        "x",
    ),
    *_both(
        Workload(
            "cross-entropy",
            {"x": (1024, 32000), "t": (1024,)},
            lambda x, t: _plait().cross_entropy(x, t),
            lambda x, t: _torch().cross_entropy(x, t),
            _entropy_jax,
            lambda x, t: x.sparse_categorical_crossentropy(t),
            _entropy_numpy,
            classes={"t": 32000},
        ),
        "x",
    ),
    Workload(
        "gelu-chain",
        {"x": (2048, 2048), "y": (2048, 2048), "b": (2048,)},
        _chain,
        _chain,
        _jax_tanh,
        _chain,
        _numpy_tanh(_chain),
    ),
    *_both(
        Workload(
            "attention",
            _ATTENTION,
            lambda q, k, v: _plait().scaled_dot_product_attention(q, k, v),
            lambda q, k, v: _torch().scaled_dot_product_attention(q, k, v),
            _attention_jax,
            lambda q, k, v: q.scaled_dot_product_attention(k, v),
            _attention_numpy,
        ),
        "q",
        "k",
        "v",
    ),
    Workload(
        "adam",
        _adam_shapes(),
        _adam_plait,
        _adam,
        _adam,
        _adam_plait,
        _adam,
        positive=tuple(f"v{i}" for i in range(_TENSORS)),
    ),
    Workload(
        "row-column-sum", {"x": (4096, 4096)}, _sums, _sums, _sums, _sums, _sums, tolerance=2e-3
    ),
    Workload(
        "statistics",
        {"x": (4096, 1024)},
        _stats(lambda x: x.std(correction=0)),
        _stats(_std_torch),
        _stats(lambda x: x.std()),
        _stats(lambda x: x.std(correction=0)),
        _stats(lambda x: x.std()),
    ),
    *_both(
        Workload("resnet-block", _BLOCK, _block_plait, _block_torch, _block_jax, _block_tiny),
        *_BLOCK,
    ),
    Workload(
        "rmsnorm-swiglu",
        {"x": (512, 512), "s": (512,), "wg": (512, 1024), "wu": (512, 1024)},
        _swiglu,
        _swiglu,
        _swiglu_jax,
        _swiglu,
        _swiglu_numpy,
    ),
    Workload(
        "matmul-bias-gelu",
        {"x": (1024, 1024), "w": (1024, 1024), "b": (1024,)},
        _product,
        _product,
        _product_jax,
        _product,
        _numpy_tanh(_product),
    ),
]
