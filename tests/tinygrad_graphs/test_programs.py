"""Programs of tinygrad have the results in plait that tinygrad itself computes."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import PackageNotFoundError

import numpy as np
import pytest
from tinygrad import Context, Tensor, Variable, dtypes, nn

from plait.errors import PlaitError
from plait.frontend.tinygrad import from_tinygrad

Result = Tensor | tuple[Tensor, ...]
Program = Callable[[], Result]
PROGRAMS: dict[str, Program] = {}


def program(function: Program) -> Program:
    PROGRAMS[function.__name__] = function
    return function


def floats(*shape: int, seed: int = 0) -> Tensor:
    values = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    return Tensor(values).realize()


def integers(*shape: int, low: int = -9, high: int = 9) -> Tensor:
    values = np.random.default_rng(1).integers(low, high, shape).astype(np.int32)
    return Tensor(values).realize()


@program
def elementwise() -> Result:
    x, y = floats(4, 5), floats(4, 5, seed=1)
    return (x * y + 2 - y / 3).relu()


@program
def broadcasting() -> Result:
    return floats(4, 1) + floats(1, 5, seed=1) * floats(3, 4, 5, seed=2)


@program
def transcendental() -> Result:
    x = floats(3, 7)
    return x.exp(), x.abs().log(), x.sin(), x.abs().sqrt(), x.tanh(), x.sigmoid()


@program
def special_values() -> Result:
    x = Tensor(np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 1.0], np.float32)).realize()
    return x + 1, x * 2, x.maximum(0), x.reciprocal(), x == x


@program
def rounding() -> Result:
    x = floats(20) * 5
    return x.trunc(), x.floor(), x.ceil(), x.round()


@program
def where_and_masks() -> Result:
    x = floats(6, 6)
    return (x > 0).where(x, -1), x.triu(), x.tril(-1), x.masked_fill(x < 0, 7)


@program
def integer_arithmetic() -> Result:
    x, y = integers(4, 6), integers(4, 6, low=1)
    return x // y, x % y, x * 3 - y, x & y, x | y, x ^ y


@program
def shifts() -> Result:
    x = integers(8, low=0).cast(dtypes.uint32)
    return x << 3, x >> 1


@program
def casts() -> Result:
    x = floats(3, 4) * 10
    return x.cast(dtypes.int32), x.half(), x.cast(dtypes.bool), x.double(), x.int().float()


@program
def bitcast() -> Result:
    return floats(5).bitcast(dtypes.uint32), integers(5).bitcast(dtypes.float32).bitcast("int32")


@program
def movement() -> Result:
    x = floats(2, 3, 4)
    return x.permute(2, 0, 1), x.flip(0, 2), x[:, 1:, ::2], x.reshape(6, 4).T, x.expand(5, 2, 3, 4)


@program
def padding() -> Result:
    x = floats(3, 4)
    return x.pad(((1, 2), (0, 3))), x.pad(((1, 0), (2, 2)), value=5.0), x.pad((-1, 1, 0, 0))


@program
def joins() -> Result:
    x, y = floats(2, 3), floats(2, 3, seed=1)
    return x.cat(y, dim=1), x.stack(y, dim=0), x.repeat(2, 2), x.roll(1, 1)


@program
def sums() -> Result:
    x = floats(3, 4, 5)
    return x.sum(), x.sum(1), x.sum((0, 2), keepdim=True), x.mean(2), x.var(1), x.std()


@program
def extremes() -> Result:
    x = floats(4, 6)
    return x.max(), x.min(1), x.argmax(1), x.argmin(0)


@program
def products_and_logic() -> Result:
    x = floats(3, 4)
    return x.prod(1), (x > 0).any(1), (x > -9).all(), (x > 0).sum(0)


@program
def matrix_product() -> Result:
    return floats(5, 7) @ floats(7, 3, seed=1)


@program
def einsum() -> Result:
    return Tensor.einsum("bij,bjk->bik", floats(2, 3, 4), floats(2, 4, 5, seed=1))


@program
def softmax() -> Result:
    x = floats(4, 9)
    return x.softmax(), x.log_softmax(0), x.logsumexp(1)


@program
def attention() -> Result:
    q, k, v = (floats(2, 2, 6, 4, seed=s) for s in range(3))
    return q.scaled_dot_product_attention(k, v, is_causal=True)


@program
def layer_norm() -> Result:
    return floats(4, 8).layernorm().gelu()


@program
def batch_norm() -> Result:
    norm = nn.BatchNorm(3)
    with Context(TRAINING=1):
        out = norm(floats(4, 3, 5, 5))
    return out, norm.running_mean, norm.running_var


@program
def convolution() -> Result:
    x, w = floats(2, 4, 8, 8), floats(6, 2, 3, 3, seed=1)
    return x.conv2d(w, groups=2, padding=1, stride=2), x.conv2d(w, groups=2, dilation=2)


@program
def pooling() -> Result:
    x = floats(2, 3, 8, 8)
    return x.max_pool2d(), x.avg_pool2d(3, stride=2)


@program
def gather() -> Result:
    x, i = floats(6, 4), integers(5, low=0, high=6)
    return x[i], x.gather(0, i.reshape(5, 1).expand(5, 4)), nn.Embedding(6, 4)(i)


@program
def scans() -> Result:
    x = floats(3, 6)
    return x.cumsum(1), x.cumprod(0), x.cummax(1)[0]


@program
def sort() -> Result:
    return floats(3, 8).sort(1)


@program
def one_hot_loss() -> Result:
    return floats(5, 4).sparse_categorical_crossentropy(integers(5, low=0, high=4))


@program
def kept_in_memory() -> Result:
    x = (floats(4, 5) + 1).contiguous()
    return x.T.contiguous() * 2, x.sum(0)


@program
def assigned() -> Result:
    x = floats(3, 4)
    y = x * 2
    x.assign(x + 1)
    return x, x * 3, y.contiguous()


@program
def assigned_twice() -> Result:
    x = floats(3, 4)
    x.assign(x + 1)
    x.assign(x * 2)
    return x


@program
def assigned_in_part() -> Result:
    x = floats(4, 4)
    x[1:3] = 5.0
    x[:, 0] = x[:, 1] * 2
    return x, x.sum(1)


@program
def uniform() -> Result:
    Tensor.manual_seed(3)
    return Tensor.rand(2, 5), Tensor.rand(7)


@program
def normal() -> Result:
    Tensor.manual_seed(4)
    return Tensor.randn(3, 3), Tensor.randint(6, low=0, high=10)


@program
def dropout() -> Result:
    Tensor.manual_seed(5)
    with Context(TRAINING=1):
        return floats(4, 8).dropout(0.4)


@program
def gradients() -> Result:
    x, w = floats(4, 5), floats(5, 3, seed=1)
    loss = (x @ w).tanh().square().sum()
    return (loss, *loss.gradient(x, w))


@program
def from_host_memory() -> Result:
    return Tensor([[1.0, 2.0], [3.0, 4.0]]) + Tensor([10, 20])


@program
def halves() -> Result:
    x = floats(4, 6).half()
    return x * 2 + x.exp(), floats(4, 6).cast(dtypes.bfloat16).float()


@program
def empty_axes() -> Result:
    return floats(0, 3).sum(0), floats(2, 0) + 1


@program
def convnet_step() -> Result:
    """Forward, backward and an SGD step with momentum: the loss, then all that it writes."""
    Tensor.manual_seed(6)
    convolution, linear = nn.Conv2d(1, 4, 3), nn.Linear(4 * 3 * 3, 5)
    weights = nn.state.get_parameters([convolution, linear])
    for weight in weights:
        weight.realize()
    with Context(TRAINING=1):
        optimizer = nn.optim.SGD(weights, lr=0.1, momentum=0.9)
        hidden = convolution(floats(3, 1, 8, 8)).relu().max_pool2d().flatten(1)
        loss = linear(hidden).sparse_categorical_crossentropy(integers(3, low=0, high=5))
        optimizer.zero_grad()
        loss.backward()
        return (loss, *optimizer.schedule_step())


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_those_of_tinygrad(name: str) -> None:
    made = PROGRAMS[name]()
    tensors = made if isinstance(made, tuple) else (made,)
    results = from_tinygrad(*tensors).run()
    Tensor.realize(*tensors)
    assert len(results) == len(tensors)
    for result, tensor in zip(results, tensors, strict=True):
        want = tensor.numpy()
        assert result.dtype == want.dtype
        tolerance = 2e-3 if want.dtype == np.float16 else 2e-5
        np.testing.assert_allclose(result, want, rtol=tolerance, atol=tolerance)


def test_buffers_stay_as_they_are() -> None:
    x = floats(3)
    before = x.numpy().copy()
    y = x * 1
    x.assign(x + 1)
    first, second = from_tinygrad(x, y), from_tinygrad(x)
    assert first.outputs == 2
    assert np.array_equal(first.run()[0], before + 1)
    assert np.array_equal(first.run()[0], second.run()[0])


def test_inputs_are_copies_or_none() -> None:
    x = floats(3)
    imported = from_tinygrad(x + Tensor.empty(3))
    held = [array for array in imported.inputs if array is not None]
    assert len(imported.inputs) == 2 and len(held) == 1
    assert np.array_equal(held[0], x.numpy())
    assert np.array_equal(imported.run()[0], x.numpy())


def test_refusals_are_one_line() -> None:
    cases: list[tuple[tuple[object, ...], str]] = [
        ((), "expected at least one tensor"),
        ((3,), "expected tinygrad tensors, found 3"),
        ((floats(2).cast(dtypes.fp8e4m3),), "CAST: dtype"),
        (((floats(3) + 1).callify(),), "tinygrad operation CALL is not supported"),
    ]
    for tensors, message in cases:
        with pytest.raises(PlaitError, match=message) as caught:
            from_tinygrad(*tensors)
        assert "\n" not in str(caught.value)


def test_other_versions_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plait.frontend.tinygrad.version", lambda _: "0.10.3")
    with pytest.raises(PlaitError, match=r"tinygrad: expected version 0\.14, found 0\.10\.3"):
        from_tinygrad(floats(2) + 1)


def test_tinygrad_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(_: str) -> str:
        raise PackageNotFoundError

    monkeypatch.setattr("plait.frontend.tinygrad.version", absent)
    with pytest.raises(PlaitError, match=r"not installed: pip install 'plait\[tinygrad\]'"):
        from_tinygrad(floats(2) + 1)


@pytest.mark.parametrize("size", [4, 6])
def test_variables_in_shapes_are_refused(size: int) -> None:
    count = Variable("count", 1, 8).bind(size)
    with pytest.raises(PlaitError, match="tinygrad operation") as caught:
        from_tinygrad(floats(8)[:count].sum())
    assert "\n" not in str(caught.value)
