"""PyTorch's functions of tensors that are no methods: ``plait.cat``, ``plait.einsum``, ..."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plait.dtypes import type_of_name
from plait.errors import PlaitError
from plait.frontend.api import make_public
from plait.frontend.creation import empty, full
from plait.frontend.node import Scalar
from plait.frontend.tensor import Tensor


def cat(tensors: Sequence[Tensor], axis: int = 0) -> Tensor:
    """Joins tensors along an axis that they have."""
    if not tensors:
        raise PlaitError("cat needs at least one tensor")
    return tensors[0].cat(*tensors[1:], axis=axis)


concat = cat


def stack(tensors: Sequence[Tensor], axis: int = 0) -> Tensor:
    """Joins tensors of one shape along a new axis."""
    if not tensors:
        raise PlaitError("stack needs at least one tensor")
    return tensors[0].stack(*tensors[1:], axis=axis)


def where(condition: Tensor, on_true: Tensor | Scalar, on_false: Tensor | Scalar) -> Tensor:
    """``on_true`` where the condition holds, else ``on_false``."""
    return condition.where(on_true, on_false)


def full_like(x: Tensor, value: Scalar, dtype: Any = None) -> Tensor:
    """One value everywhere, in the shape and element type of ``x``."""
    return full(x.shape, value=value, dtype=x.dtype if dtype is None else dtype)


def zeros_like(x: Tensor, dtype: Any = None) -> Tensor:
    return full_like(x, 0, dtype)


def ones_like(x: Tensor, dtype: Any = None) -> Tensor:
    return full_like(x, 1, dtype)


def empty_like(x: Tensor, dtype: Any = None, name: str | None = None) -> Tensor:
    """An input without data, of the shape and element type of ``x``."""
    return empty(x.shape, dtype=x.dtype if dtype is None else dtype, name=name)


def einsum(equation: str, *operands: Tensor) -> Tensor:
    """Sums of products by Einstein's convention: ``einsum("ik,kj->ij", a, b)``.

    Letters name axes, one term for each operand; those after ``->`` stay, in that order, others are
    summed. Without ``->`` the letters that occur once stay, in alphabetical order. A letter that
    occurs twice in a term takes the diagonal. Raises :class:`PlaitError` for terms that do not fit
    the shapes.
    """
    terms, result = _terms(equation, len(operands))
    extents: dict[str, int] = {}
    for term, operand in zip(terms, operands, strict=True):
        if len(term) != operand.ndim:
            raise PlaitError(
                f"einsum '{equation}': term '{term}' names {len(term)} axes, its operand has shape "
                f"{operand.shape}"
            )
        for letter, extent in zip(term, operand.shape, strict=True):
            if extents.get(letter, 1) not in (1, extent) and extent != 1:
                shapes = " and ".join(str(each.shape) for each in operands)
                raise PlaitError(
                    f"einsum '{equation}': axis '{letter}' is {extents[letter]} and {extent} in "
                    f"shapes {shapes}"
                )
            extents[letter] = max(extents.get(letter, 1), extent) if extent else 0
    letters = result + "".join(each for each in extents if each not in result)
    product = _spread(operands[0], terms[0], letters, extents)
    for operand, term in zip(operands[1:], terms[1:], strict=True):
        product = product * _spread(operand, term, letters, extents)
    full_shape = [extents[letter] for letter in letters]
    summed = list(range(len(result), len(letters)))
    product = product.expand(full_shape)
    return product.sum(summed) if summed else product


def _terms(equation: str, count: int) -> tuple[list[str], str]:
    """The terms of an equation, one for each operand, and the axes of the result."""
    left, arrow, result = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != count:
        raise PlaitError(f"einsum '{equation}': {len(terms)} terms for {count} operands")
    letters = "".join(terms)
    if not all(each.isalpha() for each in letters + result):
        raise PlaitError(f"einsum '{equation}': expected letters, commas and '->' only")
    if not arrow:
        result = "".join(sorted(each for each in set(letters) if letters.count(each) == 1))
    if len(set(result)) != len(result) or not set(result) <= set(letters):
        raise PlaitError(f"einsum '{equation}': result axes must be different ones of the terms")
    return terms, result


def _spread(operand: Tensor, term: str, letters: str, extents: dict[str, int]) -> Tensor:
    """An operand with an axis for each letter, of extent 1 for those that it does not have."""
    for letter in dict.fromkeys(term):
        while term.count(letter) > 1:
            first = term.index(letter)
            second = term.index(letter, first + 1)
            operand = _diagonal(operand, first, second, extents[letter])
            term = term[:second] + term[second + 1 :]
    ordered = operand.permute([term.index(each) for each in letters if each in term])
    have = iter(ordered.shape)
    return ordered.reshape([next(have) if each in term else 1 for each in letters])


def _diagonal(x: Tensor, first: int, second: int, extent: int) -> Tensor:
    """The elements at which two axes have the same position, along the first of them."""
    shape = list(x.shape)
    shape[first] = shape[second] = extent
    x = x.expand(shape)
    rows, columns = (x.counting(axis, type_of_name("int64"), x.shape) for axis in (first, second))
    return (rows == columns).where(x, x.full_like(0)).sum(second)


make_public(globals())
