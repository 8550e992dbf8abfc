"""Reductions, views, indexing, and writes to memory."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from compare import near, same

NAN, INF = math.nan, math.inf
ROWS = [[1.0, NAN, 3.0, 0.0], [NAN, INF, NAN, 1.0], [2.0, 2.0, 1.0, -INF], [0.5, -1.0, 4.0, 4.0]]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.sum(),
        lambda x: x.sum(0, keepdim=True),
        lambda x: x.mean(1),
        lambda x: x.prod(0),
        lambda x: x.max(1),
        lambda x: x.min(0, keepdim=True),
        lambda x: (x.argmax(), x.argmin(1)),
        lambda x: (x.amax((0, 1)), x.amin(0)),
        lambda x: (x.any(), x.all(1)),
        lambda x: x.var(1, correction=0),
        lambda x: torch.std_mean(x, 1),
        lambda x: x.cumsum(1),
        lambda x: x.cummax(1),
        lambda x: torch.softmax(x, 1),
        lambda x: torch.log_softmax(x[3:], 1),
        lambda x: torch.logsumexp(x, 0),
        lambda x: x.norm(dim=1),
    ],
)
def test_reductions_with_nan_and_infinities(function: Callable[..., Any]) -> None:
    same(function, torch.tensor(ROWS))


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int32, torch.int64], ids=str)
def test_reductions_of_integers_and_booleans(dtype: Any) -> None:
    x = torch.tensor([[0, 1, 3], [0, 0, 0], [200, 100, 7]]).to(dtype)
    for function in (torch.sum, torch.prod, torch.any, torch.all, torch.amax, torch.amin):
        same(_along(function), x)


def _along(function: Callable[..., Any]) -> Callable[..., Any]:
    def along(x: Any) -> Any:
        return function(x, 1)

    return along


@pytest.mark.parametrize("shape", [(0,), (0, 3), (1, 1), (), (5, 1)])
def test_sizes_of_zero_and_one(shape: tuple[int, ...]) -> None:
    x = torch.randn(shape)
    same(lambda x: (x.sum(), (x + 1).relu(), x.flatten(), x.unsqueeze(-1).expand(*x.shape, 3)), x)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.t().reshape(3, 8) + 1,
        lambda x: x[1:, ::2] * 2,
        lambda x: x[:, -1] + x[0, 1],
        lambda x: x.view(2, 2, 6).permute(2, 0, 1).sum(1),
        lambda x: torch.cat([x, x[:1] * 2], 0),
        lambda x: torch.stack([x, x + 1], -1),
        lambda x: torch.nn.functional.pad(x, (1, -1, 2, 0), value=3.0),
        lambda x: x.unfold(1, 3, 2) + 0,
        lambda x: x.diagonal(1) + torch.diag_embed(x[0]).diagonal()[:4],
        lambda x: x.flip(1).roll(2, 0),
        lambda x: x.tril(1) + x.triu(-1),
        lambda x: torch.cat(x.split(4, 1)[::-1], 1),
        lambda x: x.repeat(2, 1, 2),
        lambda x: x.T.contiguous().as_strided((2, 3), (1, 4), 2) + 0,
    ],
)
def test_views(function: Callable[..., Any]) -> None:
    same(function, torch.arange(24.0).reshape(4, 6))


@pytest.mark.parametrize(
    "function",
    [
        lambda x, i: x[i] * 1,
        lambda x, i: x[:, i] * 1,
        lambda x, i: x[i, i] * 1,
        lambda x, i: x[i[:, None], i] * 1,
        lambda x, i: x.index_select(1, i),
        lambda x, i: x.gather(1, i[None, :].expand(4, 3)),
        lambda x, i: x.scatter_add(0, i[:, None].expand(3, 6), x[:3]),
        lambda x, i: x.scatter(1, i[None, :], 7.0),
        lambda x, i: x.index_add(0, i, x[:3]),
        lambda x, i: x.index_put((i,), x[0], accumulate=True),
        lambda x, i: x[-i] * 1,
    ],
)
def test_positions_given_by_data(function: Callable[..., Any]) -> None:
    same(function, torch.arange(24.0).reshape(4, 6), torch.tensor([2, 0, 3]))


def changes(x: Any) -> Any:
    y = x.clone()
    y[1] = 0
    y[:, ::2] += 3
    y.mul_(2).clamp_(max=9)
    y.diagonal().fill_(-1)
    x.add_(1)
    return y, x[0] * 1, x.t()


def test_writes_to_memory() -> None:
    torch._dynamo.reset()
    x, other = torch.arange(12.0).reshape(3, 4), torch.arange(12.0).reshape(3, 4)
    made, expected = torch.compile(changes, backend="plait")(x), changes(other)
    for ours, theirs in zip([*made, x], [*expected, other], strict=True):
        near(ours, theirs, 0)
    assert made[2].data_ptr() == x.data_ptr()


def test_results_do_not_share_memory_with_each_other_or_the_inputs() -> None:
    torch._dynamo.reset()

    def function(x: Any) -> Any:
        return x.clone(), x.clone(), x + 0

    x = torch.ones(4)
    made = torch.compile(function, backend="plait")(x)
    made[0].fill_(5)
    assert made[1].tolist() == made[2].tolist() == x.tolist() == [1, 1, 1, 1]


def test_an_operator_outside_the_table_runs_in_pytorch_between_two_plans() -> None:
    torch._dynamo.reset()

    def function(x: Any) -> Any:
        return torch.special.erfcx(x.exp() + 1).sum(1) * 2

    x = torch.randn(3, 4)
    torch.testing.assert_close(torch.compile(function, backend="plait")(x), function(x))


def test_complex_numbers_are_left_to_pytorch() -> None:
    torch._dynamo.reset()

    def function(x: Any) -> Any:
        return torch.fft.ifft(torch.fft.fft(x) * 2).real + 1

    x = torch.randn(3, 4)
    torch.testing.assert_close(torch.compile(function, backend="plait")(x), function(x))
