"""Functions and parameters named as in PyTorch, numpy arrays among tensors, and kind refusals."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plait
from plait import Tensor

A = np.random.default_rng(1).uniform(0.5, 1.5, (4, 6)).astype(np.float32)
B = np.random.default_rng(2).uniform(0.5, 1.5, (6, 3)).astype(np.float32)
S = np.random.default_rng(3).uniform(0.5, 1.5, (5, 5)).astype(np.float32)

SAME: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "sum": (lambda x: x.sum(dim=1, keepdim=True), A.sum(1, keepdims=True)),
    "sum of axes": (lambda x: plait.sum(x, dim=(0, 1)), A.sum()),
    "keepdims": (lambda x: x.mean(axis=0, keepdims=True), A.mean(0, keepdims=True)),
    "argmax": (lambda x: x.argmax(dim=1), A.argmax(1)),
    "cumsum": (lambda x: x.cumsum(dim=0), A.cumsum(0)),
    "softmax": (lambda x: plait.softmax(x, dim=0), np.exp(A) / np.exp(A).sum(0)),
    "unsqueeze": (lambda x: x.unsqueeze(dim=1), A[:, None]),
    "transpose": (lambda x: x.transpose(dim0=0, dim1=1), A.T),
    "permute": (lambda x: x.permute(dims=(1, 0)), A.T),
    "flip": (lambda x: x.flip(dims=[0]), A[::-1]),
    "flatten": (lambda x: x.flatten(start_dim=0, end_dim=1), A.reshape(-1)),
    "roll": (lambda x: x.roll(shifts=1, dims=1), np.roll(A, 1, 1)),
    "clamp": (lambda x: x.clamp(min=0.8, max=1.2), A.clip(0.8, 1.2)),
    "repeat_interleave": (lambda x: x.repeat_interleave(repeats=2, dim=1), A.repeat(2, 1)),
    "cat": (lambda x: plait.cat([x, x], dim=1), np.concatenate([A, A], 1)),
    "stack": (lambda x: plait.stack([x, x + 1], dim=1), np.stack([A, A + 1], 1)),
    "where": (lambda x: plait.where(x > 1, x, 0.0), np.where(A > 1, A, 0)),
    "zeros_like": (lambda x: plait.zeros_like(x), np.zeros_like(A)),
    "ones_like": (lambda x: plait.ones_like(x, dtype="int64"), np.ones_like(A, np.int64)),
    "full_like": (lambda x: plait.full_like(x, fill_value=3), np.full_like(A, 3)),
    "full": (lambda x: plait.full((2, 3), 5) + plait.full(2, 3, value=1), np.full((2, 3), 6.0)),
    "arange": (lambda x: plait.arange(1, end=2, step=0.25), np.arange(1, 2, 0.25)),
    "arange down": (lambda x: plait.arange(5, 0, -2), np.arange(5, 0, -2)),
    "linspace": (lambda x: plait.linspace(0, 1, steps=5), np.linspace(0, 1, 5)),
    "exp": (lambda x: plait.exp(x), np.exp(A)),
    "array left": (lambda x: A + x, A + A),
    "array right": (lambda x: x / A, A / A),
    "array product": (lambda x: A.T @ x, A.T @ A),
    "array compared": (lambda x: operator.gt(A, x * 0.5), A > A * 0.5),
    "scalar of numpy": (lambda x: np.float32(2) * x + np.int64(1), 2 * A + 1),
    "array argument": (lambda x: x.maximum(A * 2), A * 2),
    "sum of rows": (lambda x: sum(row for row in x), A.sum(0)),
    "list of rows": (lambda x: plait.stack(list(x)[::-1]), A[::-1]),
    "list index": (lambda x: x[[3, 0, -1]], A[[3, 0, -1]]),
    "array index": (lambda x: x[:, np.array([1, 1])], A[:, [1, 1]]),
}


@pytest.mark.parametrize("name", SAME)
def test_as_numpy(name: str) -> None:
    function, want = SAME[name]
    for x in (plait.tensor(A),):
        result = function(x)
        assert isinstance(result, Tensor) and result.shape == np.shape(want)
        np.testing.assert_allclose(result.numpy(), want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("equation", "operands"),
    [
        ("ik,kj->ij", (A, B)),
        ("ik,kj", (A, B)),
        ("ij->ji", (A,)),
        ("ij->", (A,)),
        ("ij->j", (A,)),
        ("ii->i", (S,)),
        ("ii", (S,)),
        ("ij,ij->i", (A, A)),
        ("i,j->ij", (A[0], B[0])),
        ("ij,jk,kl->il", (A, B, B.T)),
        ("iij,j->i", (np.stack([S] * 5), S[0])),
        ("ij,kj->ik", (A, np.ones((2, 1), np.float32))),
    ],
)
def test_einsum(equation: str, operands: tuple[Any, ...]) -> None:
    result = plait.einsum(equation, *map(plait.tensor, operands)).numpy()
    np.testing.assert_allclose(result, np.einsum(equation, *operands), rtol=1e-4)


def test_gradient_of_a_single_tensor() -> None:
    x = plait.tensor(A)
    [alone] = plait.grad((x * x).sum(), x)
    np.testing.assert_allclose(alone.numpy(), 2 * A, rtol=1e-6)


def test_length_and_iteration() -> None:
    x = plait.tensor(A)
    assert len(x) == 4 and [row.shape for row in x] == [(6,)] * 4
    assert x.sum().item() == pytest.approx(float(A.sum()), rel=1e-5)
    assert x[0].tolist() == A[0].tolist()
    np.testing.assert_array_equal(np.asarray(x), A)
    with pytest.raises(TypeError, match="without axes"):
        list(x.sum())


X, Y = plait.empty(4, 6, name="x"), plait.empty(3, 6)
REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "bool": (lambda: bool(X), "the truth of a tensor is not known"),
    "float": (lambda: float(X), "use `.cast('float32')` to convert its elements"),
    "int": (lambda: int(X), "`int(x.item())` to compute it"),
    "extent": (lambda: plait.full(-1), "expected extents of 0 or more"),
    "no outputs": (lambda: plait.schedule(), "schedule needs at least one tensor"),
    "None": (lambda: plait.schedule(None), "schedule: 'outputs' must be a tensor, found None"),
    "list": (lambda: plait.schedule([X]), "schedule: 'outputs' must be a tensor, found [<Tensor"),
    "unflatten": (lambda: X.unflatten(1, (4, 2)), "cannot split axis 1 of shape (4, 6)"),
    "split": (lambda: X.split(0), "split takes pieces of 1 or more elements, found 0"),
    "chunk": (lambda: X.chunk(0), "chunk makes 1 or more pieces, found 0"),
    "step": (lambda: X[::0], "slice step cannot be zero"),
    "index": (lambda: X["a"], "an index is an integer, a slice, None or ..., found 'a'"),
    "axis": (lambda: X.sum(2), "axis 2 is out of range for shape (4, 6): expected -2 to 1"),
    "axis kind": (lambda: X.sum(dim="a"), "sum: 'axis' must be an axis, a sequence of axes or No"),
    "shapes": (lambda: X + Y, "shapes (4, 6) and (3, 6) cannot be broadcast together"),
    "matmul": (lambda: X @ Y, "cannot multiply matrices of shapes (4, 6) and (3, 6)"),
    "cat": (lambda: plait.cat([X, Y], 1), "4x6"),
    "einsum": (lambda: plait.einsum("ij,ij->i", X, Y), "axis 'i' is 4 and 3 in shapes (4, 6) and "),
    "einsum term": (lambda: plait.einsum("ijk->i", X), "term 'ijk' names 3 axes, its operand has"),
    "grad": (lambda: plait.grad(X.sum(), [None]), "grad: 'inputs' must be a tensor or a sequence"),
    "optimiser": (lambda: plait.optim.sgd([X], [Y]), "has shape (4, 6), its place in grads (3, 6)"),
    "result": (lambda: plait.compile(lambda x: None)(A), "expected a tensor or a sequence of them"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_say_what_is_wrong(name: str) -> None:
    call, message = REFUSED[name]
    with pytest.raises((plait.PlaitError, ValueError), match=re.escape(message)) as caught:
        call()
    assert "\n" not in str(caught.value)
