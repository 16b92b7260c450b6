"""Weights that were folded into a file: whether they still are what they were.

A module that was optimized holds its weights as constants. If they change afterwards, its results would be
those of the old ones, silently. So each call looks at the tensors first. PyTorch counts changes in place in
the version of a tensor; a tensor or a storage that was replaced has another address. ``.data`` and NumPy
change a tensor without being counted: some of its elements are compared, too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

import torch

#: How many elements of a tensor are compared: the ends, and some between.
_SAMPLES = 16


class WatchedWeights:
    """Tensors, and how they were when they were looked at for the first time."""

    def __init__(self, tensors: Sequence[torch.Tensor]) -> None:
        """Remember tensors as they are now."""
        self.tensors = list(tensors)
        self._versions = [_version(tensor) for tensor in self.tensors]
        self._addresses = [tensor.data_ptr() for tensor in self.tensors]
        by_type: dict[torch.dtype, list[torch.Tensor]] = {}
        for tensor in self.tensors:
            if tensor.numel():
                by_type.setdefault(tensor.dtype, []).append(_samples(tensor.detach()))
        self._samples = [(views, torch.cat(views)) for views in by_type.values()]

    def are(self, tensors: Sequence[torch.Tensor]) -> bool:
        """Whether these are the same tensors, and none has changed."""
        if len(tensors) != len(self.tensors):
            return False
        for now, then, version, address in zip(
            tensors, self.tensors, self._versions, self._addresses, strict=True
        ):
            if now is not then or _version(now) != version or now.data_ptr() != address:
                return False
        return all(_equal(torch.cat(views), were) for views, were in self._samples)


def tensors_of(module: torch.nn.Module) -> Iterator[torch.Tensor]:
    """Yield the tensors that a module computes with, also those that are plain attributes.

    Each call of an optimized module asks for them, so it is one walk: PyTorch's own iterators take three.
    """
    seen: set[torch.nn.Module] = set()
    left = [module]
    while left:
        each = left.pop()
        if each in seen:
            continue
        seen.add(each)
        own = vars(each)
        for held in (own["_parameters"], own["_buffers"], own):
            for value in held.values():
                if isinstance(value, torch.Tensor):
                    yield value
        left += [child for child in own["_modules"].values() if child is not None]


def digest_of(tensors: Sequence[torch.Tensor]) -> str:
    """Return a digest of types, shapes and all elements."""
    digest = hashlib.blake2b(digest_size=16)
    for tensor in tensors:
        digest.update(f"{tensor.dtype} {tuple(tensor.shape)};".encode())
        dense = tensor.detach().cpu().contiguous()
        if dense.numel():
            digest.update(dense.reshape(-1).view(torch.uint8).numpy())
    return digest.hexdigest()


def _version(tensor: torch.Tensor) -> int:
    """Return how often a tensor was changed in place; tensors of inference mode do not count."""
    return 0 if tensor.is_inference() else tensor._version


def _samples(tensor: torch.Tensor) -> torch.Tensor:
    """Return a view of some elements of a tensor: it changes with them."""
    span = 1 + sum(
        (size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True)
    )
    flat = tensor.as_strided((span,), (1,))
    step = max(1, (flat.numel() - 1) // _SAMPLES)
    return flat[::step]


def _equal(now: torch.Tensor, then: torch.Tensor) -> bool:
    """Whether two tensors have the same elements, NaN included."""
    if torch.equal(now, then):
        return True
    return now.is_floating_point() and bool(
        torch.allclose(now, then, rtol=0, atol=0, equal_nan=True)
    )
