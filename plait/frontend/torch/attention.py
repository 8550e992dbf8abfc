"""Scaled dot-product attention, and its gradients from what the forward pass keeps."""

from __future__ import annotations

import math

from plait.frontend.tensor import Tensor
from plait.frontend.torch.api import UnsupportedError
from plait.frontend.torch.reductions import accumulated
from plait.frontend.torch.table import lowers


def _scores(
    query: Tensor, key: Tensor, is_causal: bool, mask: Tensor | None, scale: float | None
) -> tuple[Tensor, float]:
    """What softmax is taken of, and the factor in it."""
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = accumulated(query).matmul(accumulated(key).mT) * factor
    if mask is not None:
        scores = scores + accumulated(mask).cast(scores.element)
    if is_causal:
        kept = Tensor.constant(1, scores.element, scores.shape).tril() > 0
        scores = kept.where(scores, -math.inf)
    return scores, factor


@lowers("_scaled_dot_product_flash_attention_for_cpu")
def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> tuple[Tensor, Tensor]:
    """The result, and the logarithm of the sum of each row; a row with no key at all is 0."""
    if dropout_p or not query.size or not key.size:
        raise UnsupportedError("attention with dropout, or of nothing")
    scores, _ = _scores(query, key, is_causal, attn_mask, scale)
    top = scores.max(-1, keepdim=True)
    dead = top == -math.inf
    weights = (scores - dead.where(0.0, top)).exp()
    total = weights.sum(-1, keepdim=True)
    result = weights.matmul(accumulated(value)) / dead.where(1.0, total)
    sums = dead.where(0.0, top + total.log()).squeeze(-1)
    return result.cast(query.element), sums


@lowers("_scaled_dot_product_flash_attention_for_cpu_backward")
def attention_backward(
    g: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    out: Tensor,
    logsumexp: Tensor,
    dropout_p: float,
    is_causal: bool,
    *,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    if dropout_p or not query.size or not key.size:
        raise UnsupportedError("attention with dropout, or of nothing")
    scores, factor = _scores(query, key, is_causal, attn_mask, scale)
    weights = (scores - logsumexp.unsqueeze(-1)).exp()
    grad = accumulated(g)
    delta = (grad * accumulated(out)).sum(-1, keepdim=True)
    inner = weights * (grad.matmul(accumulated(value).mT) - delta) * factor
    to_query = inner.matmul(accumulated(key))
    to_key = inner.mT.matmul(accumulated(query))
    to_value = weights.mT.matmul(grad)
    return to_query.cast(query.element), to_key.cast(key.element), to_value.cast(value.element)
