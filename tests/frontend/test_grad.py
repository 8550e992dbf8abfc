"""Gradients of every differentiable method and function against finite differences in float64."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from functions import BINARY, FUNCTIONS, POSITIVE, UNARY

import plait
from plait import Tensor
from plait.frontend.trace import build_module
from plait.nn import functional as F
from plait.runtime.interpret import run_module

RNG = np.random.default_rng(7)
STEP = 1e-6


def evaluate(outputs: Sequence[Tensor], inputs: Sequence[Tensor], arrays: Sequence[np.ndarray]):
    module, _ = build_module(outputs, inputs)
    module.verify()
    return run_module(module, arrays)


def check(
    function: Callable[..., Tensor], *shapes: tuple[int, ...], low: float = -1.5, high: float = 1.5
) -> None:
    """The gradient of a random projection of the result, along random directions."""
    inputs = [plait.empty(shape, dtype="float64") for shape in shapes]
    arrays = [RNG.uniform(low, high, shape) for shape in shapes]
    output = function(*inputs)
    weights = RNG.standard_normal(output.shape)
    loss = (output * plait.tensor(weights, dtype="float64")).sum()
    gradients = plait.grad(loss, inputs)
    for gradient, tensor in zip(gradients, inputs, strict=True):
        assert gradient.shape == tensor.shape
    module, order = build_module([loss, *gradients], None)

    def run(values: Sequence[np.ndarray]) -> list[np.ndarray]:
        given = {id(tensor): value for tensor, value in zip(inputs, values, strict=True)}
        return run_module(module, [given.get(id(t), t.array) for t in order])

    found = run(arrays)[1:]
    for number, gradient in enumerate(found):
        if not gradient.size:
            continue
        direction = RNG.standard_normal(gradient.shape)

        def moved(sign: float, number: int = number, direction: np.ndarray = direction) -> float:
            values = list(arrays)
            values[number] = values[number] + sign * STEP * direction
            return float(run(values)[0])

        numeric = (moved(1) - moved(-1)) / (2 * STEP)
        exact = float((gradient * direction).sum())
        assert exact == pytest.approx(numeric, rel=2e-5, abs=2e-6)


@pytest.mark.parametrize("name", UNARY)
def test_methods(name: str) -> None:
    check(UNARY[name], (2, 4, 4))


@pytest.mark.parametrize("name", ["sum", "mean", "softmax", "cumsum", "max", "reshape", "flip"])
@pytest.mark.parametrize("shape", [(1, 4, 4), (2, 1, 4), (2, 4, 1), (1, 1, 1)])
def test_axes_of_one(name: str, shape: tuple[int, ...]) -> None:
    check(UNARY[name], shape)


@pytest.mark.parametrize("name", ["exp", "sum_axes", "cumsum", "permute", "log_softmax", "prod"])
def test_empty_axes(name: str) -> None:
    check(UNARY[name], (0, 4, 4))


@pytest.mark.parametrize(
    "function",
    [Tensor.log, Tensor.log2, Tensor.sqrt, Tensor.rsqrt, Tensor.reciprocal, Tensor.log1p],
)
def test_positive(function: Callable[[Tensor], Tensor]) -> None:
    check(function, (3, 4), **POSITIVE)


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize(
    "shapes", [((3, 4), (3, 4)), ((3, 1), (4,)), ((1,), (2, 3)), ((), (2, 2)), ((0, 3), (1, 3))]
)
def test_broadcasting(name: str, shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    check(BINARY[name], *shapes, **POSITIVE)


@pytest.mark.parametrize(
    "shapes",
    [
        ((3, 4), (4, 2)),
        ((2, 3, 4), (4, 2)),
        ((4,), (4, 2)),
        ((3, 4), (4,)),
        ((2, 1, 3, 4), (5, 4, 2)),
    ],
)
def test_matmul(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    check(Tensor.matmul, *shapes)


def test_gather_and_scatter() -> None:
    rows = plait.tensor(np.array([[2, 0, 2, -1], [1, 1, 0, 2]]))
    check(lambda x: x.gather(0, rows).exp(), (3, 4))
    check(lambda x: x[plait.tensor(np.array([2, 0, 2]))].exp(), (3, 4))
    check(lambda x, u: x.scatter_add(0, rows, u).exp(), (3, 4), (2, 4))
    check(lambda x, u: x.scatter(0, rows, u).exp(), (3, 4), (2, 4))


CONVOLUTIONS = [
    {},
    {"stride": 2},
    {"padding": 1},
    {"padding": (2, 1), "stride": (2, 1)},
    {"dilation": 2},
    {"groups": 2},
    {"padding": "same", "groups": 2},
    {"stride": 3, "padding": 2, "dilation": 2},
]


@pytest.mark.parametrize("options", CONVOLUTIONS)
def test_conv2d(options: dict[str, object]) -> None:
    groups = options.get("groups", 1)
    channels = 4 // groups  # type: ignore[operator]
    check(lambda x, w, b: F.conv2d(x, w, b, **options), (2, 4, 7, 6), (4, channels, 3, 2), (4,))


def test_conv1d() -> None:
    check(lambda x, w: F.conv1d(x, w, stride=2, padding=1), (2, 3, 8), (5, 3, 3))


@pytest.mark.parametrize(
    "options", [{}, {"stride": 2}, {"stride": 2, "padding": 1, "output_padding": 1}, {"groups": 2}]
)
def test_conv_transpose(options: dict[str, int]) -> None:
    out = 4 // options.get("groups", 1)
    check(lambda x, w: F.conv_transpose2d(x, w, **options), (2, 4, 4, 3), (4, out, 3, 3))
    check(lambda x, w: F.conv_transpose1d(x, w, **options), (2, 4, 5), (4, out, 3))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str) -> None:
    function, shapes = FUNCTIONS[name]
    check(function, *shapes)


@pytest.mark.parametrize("options", [{}, {"label_smoothing": 0.2}, {"reduction": "sum"}])
def test_cross_entropy(options: dict[str, object]) -> None:
    target = plait.tensor(np.array([1, 4, -100, 0]))
    check(lambda x: F.cross_entropy(x, target, **options), (4, 5))


def test_embedding() -> None:
    rows = plait.tensor(np.array([[1, 4, 1], [0, 0, 2]]))
    check(lambda w: F.embedding(rows, w).exp(), (5, 3))


def test_zero_for_what_does_not_matter() -> None:
    x, y = plait.empty(3), plait.empty(2)
    [gradient] = plait.grad(x.sum(), [y])
    assert gradient.shape == (2,)


def test_errors_name_shapes() -> None:
    x = plait.empty(3, 4)
    with pytest.raises(plait.PlaitError, match=r"grad_output"):
        plait.grad(x * 2, [x])
    with pytest.raises(plait.PlaitError, match=r"\(3, 4\) and \(5,\)"):
        x + plait.empty(5)
    with pytest.raises(plait.PlaitError, match=r"\(3, 4\) and \(3, 4\)"):
        x @ x
    with pytest.raises(plait.PlaitError, match="axis 2"):
        x.sum(2)
