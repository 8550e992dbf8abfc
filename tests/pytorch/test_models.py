"""Models and training steps by ``torch.compile`` against eager float64."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from compare import near, trains
from torch import nn


@pytest.fixture(autouse=True)
def fresh() -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)


def test_mlp_trains() -> None:
    model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4))
    trains(model, [torch.randn(5, 8)])


def test_convolutions_with_batch_norm_train_and_evaluate() -> None:
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(3, 2, 1),
        nn.Conv2d(8, 8, 3, stride=2, groups=2),
        nn.AvgPool2d(2),
        nn.Flatten(),
        nn.Linear(8, 5),
    )
    x = torch.randn(2, 3, 14, 14)
    compiled = trains(model, [x])
    compiled.eval()
    with torch.no_grad():
        near(compiled(x), model(x), 1e-5)


def test_attention_trains() -> None:
    model = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True)
    trains(model, [torch.randn(2, 6, 16)])


@pytest.mark.parametrize("causal", [False, True])
def test_attention_with_a_mask(causal: bool) -> None:
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 3, 5, 4, requires_grad=True) for _ in range(3))
    mask = None if causal else torch.rand(5, 5) > 0.5
    if mask is not None:
        mask[0] = False

    def attend(q: Any, k: Any, v: Any) -> Any:
        return nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal)

    made = torch.compile(attend, backend="plait")(q, k, v)
    expected = attend(q, k, v)
    torch.testing.assert_close(made, expected)
    weights = torch.randn_like(made)
    for ours, theirs in zip(
        torch.autograd.grad(made, (q, k, v), weights),
        torch.autograd.grad(expected, (q, k, v), weights),
        strict=True,
    ):
        torch.testing.assert_close(ours, theirs)


def test_embedding_trains() -> None:
    model = nn.Sequential(nn.Embedding(10, 6, padding_idx=2), nn.Linear(6, 3))
    trains(model, [torch.tensor([[1, 2, 3], [2, 9, 1]])])


def test_positions_out_of_range_raise() -> None:
    compiled = torch.compile(nn.Embedding(4, 3), backend="plait")
    compiled(torch.tensor([0, 3]))
    with pytest.raises(IndexError):
        compiled(torch.tensor([0, 4]))


def test_dropout_draws_the_numbers_of_eager_pytorch() -> None:
    model = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.3), nn.ReLU(), nn.Dropout(0.5))
    compiled, x = torch.compile(model, backend="plait"), torch.randn(4, 8)
    for seed in (1, 2):
        torch.manual_seed(seed)
        expected = model(x)
        torch.manual_seed(seed)
        torch.testing.assert_close(compiled(x), expected)


def test_several_shapes() -> None:
    model = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 2))
    compiled = torch.compile(model, backend="plait")
    for count in (4, 7, 1, 4, 9):
        x = torch.randn(count, 8)
        near(compiled(x), model(x), 1e-5)


def test_cross_entropy_and_an_optimiser() -> None:
    model = nn.Linear(6, 4)
    reference = nn.Linear(6, 4).double()
    reference.load_state_dict(model.state_dict())
    x, target = torch.randn(8, 6), torch.randint(0, 4, (8,))

    def loss_of(module: Any, x: Any) -> Any:
        return nn.functional.cross_entropy(module(x), target)

    compiled = torch.compile(lambda x: loss_of(model, x), backend="plait")
    ours = torch.optim.AdamW(model.parameters(), lr=0.1)
    theirs = torch.optim.AdamW(reference.parameters(), lr=0.1)
    for _ in range(4):
        made, expected = compiled(x), loss_of(reference, x.double())
        near(made, expected, 1e-5)
        for loss, optimiser in ((made, ours), (expected, theirs)):
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
