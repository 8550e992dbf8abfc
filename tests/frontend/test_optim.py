"""Optimisers against their formulas, written out in numpy, over several steps."""

from __future__ import annotations

import numpy as np
import pytest

import plait
from plait import optim

RNG = np.random.default_rng(11)
SHAPES = [(3, 4), (5,)]


@pytest.mark.parametrize("nesterov", [False, True])
@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_sgd(nesterov: bool, decay: float) -> None:
    params = [RNG.standard_normal(shape).astype(np.float32) for shape in SHAPES]
    velocity = [np.zeros_like(p) for p in params]

    def step(*tensors: plait.Tensor) -> list[plait.Tensor]:
        p, g, m = tensors[:2], tensors[2:4], tensors[4:]
        new, kept = optim.sgd(p, g, m, 0.1, 0.9, decay, nesterov)
        return [*new, *kept]

    compiled = plait.compile(step)
    want = [p.astype(np.float64) for p in params]
    moved = [np.zeros_like(p) for p in want]
    for _ in range(3):
        grads = [RNG.standard_normal(shape).astype(np.float32) for shape in SHAPES]
        for k, g in enumerate(grads):
            full = g + decay * want[k]
            moved[k] = 0.9 * moved[k] + full
            want[k] = want[k] - 0.1 * (full + 0.9 * moved[k] if nesterov else moved[k])
        results = compiled(*params, *grads, *velocity)
        params, velocity = results[:2], results[2:]
    for result, expected in zip(params, want, strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("decoupled", [False, True])
def test_adam(decoupled: bool) -> None:
    params = [RNG.standard_normal(shape).astype(np.float32) for shape in SHAPES]
    state = [np.zeros_like(p) for p in (*params, *params)]

    def step(count: plait.Tensor, *tensors: plait.Tensor) -> list[plait.Tensor]:
        p, g, m, v = (tensors[k : k + 2] for k in range(0, 8, 2))
        function = optim.adamw if decoupled else optim.adam
        new, means, squares = function(p, g, m, v, count, 0.01, weight_decay=0.1)
        return [*new, *means, *squares]

    compiled = plait.compile(step)
    want = [p.astype(np.float64) for p in params]
    m, v = [np.zeros_like(p) for p in want], [np.zeros_like(p) for p in want]
    for t in range(1, 4):
        grads = [RNG.standard_normal(shape).astype(np.float32) for shape in SHAPES]
        for k, gradient in enumerate(grads):
            g = gradient.astype(np.float64)
            if decoupled:
                want[k] = want[k] * (1 - 0.01 * 0.1)
            else:
                g = g + 0.1 * want[k]
            m[k], v[k] = 0.9 * m[k] + 0.1 * g, 0.999 * v[k] + 0.001 * g * g
            mean, square = m[k] / (1 - 0.9**t), v[k] / (1 - 0.999**t)
            want[k] = want[k] - 0.01 * mean / (np.sqrt(square) + 1e-8)
        results = compiled(np.array([t], np.float32), *params, *grads, *state)
        params, state = results[:2], results[2:]
    for result, expected in zip(params, want, strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)
