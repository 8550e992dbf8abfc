"""Losses."""

from __future__ import annotations

from plait.errors import PlaitError
from plait.frontend.api import make_public
from plait.frontend.tensor import Tensor


def reduced(loss: Tensor, reduction: str) -> Tensor:
    """A loss per element as its ``mean``, ``sum`` or as it is (``none``)."""
    match reduction:
        case "mean":
            return loss.mean()
        case "sum":
            return loss.sum()
        case "none":
            return loss
        case _:
            raise PlaitError(f"unknown reduction '{reduction}': expected mean, sum or none")


def nll_loss(
    log_probabilities: Tensor, target: Tensor, ignore_index: int = -100, reduction: str = "mean"
) -> Tensor:
    """Negative log likelihood of classes: (N, C, ...) by class numbers (N, ...)."""
    log_probabilities.require_axes(2)
    counted = target != ignore_index
    safe = counted.where(target, 0).unsqueeze(1)
    picked = log_probabilities.gather(1, safe).squeeze(1)
    loss = counted.where(-picked, 0.0)
    if reduction != "mean":
        return reduced(loss, reduction)
    return loss.sum() / counted.cast(loss.element).sum()


def cross_entropy(
    logits: Tensor,
    target: Tensor,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Cross entropy of logits (N, C, ...) and class numbers (N, ...), or probabilities of the
    logits' shape."""
    logits.require_axes(2)
    log = logits.log_softmax(1)
    if target.is_floating:
        classes = logits.shape[1]
        smooth = target * (1 - label_smoothing) + label_smoothing / classes
        loss = -(log * smooth).sum(1)
        return loss.sum() / (loss.size or 1) if reduction == "mean" else reduced(loss, reduction)
    hard = nll_loss(log, target, ignore_index, reduction)
    if not label_smoothing:
        return hard
    counted = target != ignore_index
    spread = counted.where(-log.mean(1), 0.0)
    if reduction == "mean":
        soft = spread.sum() / counted.cast(log.element).sum()
    else:
        soft = reduced(spread, reduction)
    return hard * (1 - label_smoothing) + soft * label_smoothing


def mse_loss(x: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    difference = x - target
    return reduced(difference * difference, reduction)


def l1_loss(x: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    return reduced((x - target).abs(), reduction)


def huber_loss(x: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0) -> Tensor:
    """Quadratic within ``delta`` of the target, linear beyond (Huber, 1964)."""
    distance = (x - target).abs()
    near = distance * distance * 0.5
    return reduced((distance < delta).where(near, (distance - 0.5 * delta) * delta), reduction)


def smooth_l1_loss(x: Tensor, target: Tensor, reduction: str = "mean", beta: float = 1.0) -> Tensor:
    """The Huber loss over ``beta``; the absolute one for 0."""
    if beta == 0:
        return l1_loss(x, target, reduction)
    return huber_loss(x, target, reduction, beta) * (1 / beta)


def binary_cross_entropy_with_logits(
    logits: Tensor, target: Tensor, reduction: str = "mean"
) -> Tensor:
    """max(x, 0) - x * t + log(1 + exp(-|x|)), without overflow."""
    return reduced(logits.softplus() - logits * target, reduction)


def kl_div(log_input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """Pointwise Kullback-Leibler divergence of log probabilities from probabilities."""
    positive = target > 0
    safe = positive.where(target, 1.0)
    return reduced(positive.where(target * (safe.log() - log_input), 0.0), reduction)


make_public(globals())
