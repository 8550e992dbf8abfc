"""Optimisers as pure functions: parameters, gradients and state to new parameters and state."""

from __future__ import annotations

from collections.abc import Sequence

from plait.errors import PlaitError
from plait.frontend.api import make_public
from plait.frontend.tensor import Tensor

__all__ = ["adam", "adamw", "sgd"]


def matching(params: Sequence[Tensor], **others: Sequence[Tensor]) -> None:
    """Raises :class:`PlaitError` unless there is one of each for every parameter, of its shape."""
    for name, tensors in others.items():
        if len(tensors) != len(params):
            raise PlaitError(f"{len(params)} parameters, but {len(tensors)} {name}")
        for number, (p, tensor) in enumerate(zip(params, tensors, strict=True)):
            if p.shape != tensor.shape:
                raise PlaitError(
                    f"parameter {number} has shape {p.shape}, its place in {name} {tensor.shape}"
                )


def sgd(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    momenta: Sequence[Tensor] | None = None,
    lr: float = 0.01,
    momentum: float = 0.0,
    weight_decay: float = 0.0,
    nesterov: bool = False,
) -> tuple[list[Tensor], list[Tensor]]:
    """Stochastic gradient descent as in PyTorch: new parameters and momenta (none without
    ``momenta``)."""
    matching(params, grads=grads, momenta=params if momenta is None else momenta)
    new: list[Tensor] = []
    kept: list[Tensor] = []
    for number, (p, g) in enumerate(zip(params, grads, strict=True)):
        step = g + p * weight_decay if weight_decay else g
        if momenta is not None:
            running = momenta[number] * momentum + step
            kept.append(running)
            step = step + running * momentum if nesterov else running
        new.append(p - step * lr)
    return new, kept


def adam(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    first: Sequence[Tensor],
    second: Sequence[Tensor],
    step: Tensor,
    lr: float = 1e-3,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    weight_decay: float = 0.0,
    decoupled: bool = False,
) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
    """Adam (Kingma and Ba, 2015): new parameters, first and second moments. ``step`` is the number
    of this step, from 1, as a float tensor of one element."""
    matching(params, grads=grads, first=first, second=second)
    if step.size != 1 or not step.is_floating:
        raise PlaitError(f"'step' must be one float, found {step.dtype} of shape {step.shape}")
    a, b = betas
    rate = lr / (1 - Tensor.constant(a, step.element, step.shape) ** step)
    scale = (1 - Tensor.constant(b, step.element, step.shape) ** step).sqrt()
    new: list[Tensor] = []
    means: list[Tensor] = []
    squares: list[Tensor] = []
    for p, g, m, v in zip(params, grads, first, second, strict=True):
        if weight_decay and not decoupled:
            g = g + p * weight_decay
        m = m * a + g * (1 - a)
        v = v * b + g * g * (1 - b)
        start = p * (1 - lr * weight_decay) if decoupled and weight_decay else p
        new.append(start - rate.reshape(()) * m / (v.sqrt() / scale.reshape(()) + eps))
        means.append(m)
        squares.append(v)
    return new, means, squares


def adamw(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    first: Sequence[Tensor],
    second: Sequence[Tensor],
    step: Tensor,
    lr: float = 1e-3,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    weight_decay: float = 0.01,
) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
    """Adam with decoupled weight decay (Loshchilov and Hutter, 2019)."""
    return adam(params, grads, first, second, step, lr, betas, eps, weight_decay, decoupled=True)


make_public(globals())
