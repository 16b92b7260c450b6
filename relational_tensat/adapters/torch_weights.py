"""Weights that were folded into a file: whether they still are what they were.

A module that was optimized holds its weights as constants. If they change afterwards, its results would be
those of the old ones, silently. So each call looks first at the objects that the module's parts refer to,
at each tensor's version (PyTorch counts changes in place in it), and at each tensor's place in memory.
NumPy and ``.data`` change a tensor without being counted: some of its elements are compared, too.

Each of these is one expression that runs in C, a few nanoseconds for each tensor or attribute.
"""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from operator import attrgetter, is_, itemgetter
from typing import Any

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

#: At how many places of a tensor two elements are compared: the ends, and some between.
_PLACES = 8
#: Bytes that memory is read by, and how many of a tensor's and of a storage's own objects are looked at.
_LINE, _OF_TENSOR, _OF_STORAGE = 64, 192, 72
_version = attrgetter("_version")
_members = itemgetter("_parameters", "_buffers", "_modules", "_forward_hooks", "_forward_pre_hooks")


class WatchedWeights:
    """Tensors, and how they were when they were looked at for the first time."""

    def __init__(self, tensors: Iterable[torch.Tensor]) -> None:
        """Remember tensors as they are now."""
        self._tensors = list(tensors)
        #: Tensors of inference mode do not count their changes.
        self._counting = [tensor for tensor in self._tensors if not tensor.is_inference()]
        self._looks = self._look()
        #: The storage of the elements stays in memory, even if the tensors go.
        self._held = [tensor.untyped_storage() for tensor in self._tensors]
        self._reads = list(_reads(self._tensors))
        self._elements = [read().tobytes() for read in self._reads]
        self._fetch = _reader(_objects(self._tensors, self._held), 8)

    def are(self, tensors: Sequence[torch.Tensor]) -> bool:
        """Whether these are the same tensors, and none has changed."""
        is_same = len(tensors) == len(self._tensors) and all(map(is_, tensors, self._tensors))
        return is_same and self.are_as_before()

    def are_as_before(self) -> bool:
        """Whether no tensor has changed."""
        # All at once from memory: one after the other waits for each.
        self._fetch()
        # Where all lie as before, their memory may be read.
        return self._look() == self._looks and self._elements == [
            read().tobytes() for read in self._reads
        ]

    def _look(self) -> tuple[list[Any], ...]:
        """Return how often each was changed in place, and where it lies, in what form."""
        return (
            [*map(_version, self._counting)],
            [*map(torch.Tensor.data_ptr, self._tensors)],
            [*map(torch.Tensor.stride, self._tensors)],
            [*map(torch.Tensor.size, self._tensors)],
        )


class WatchedModule:
    """All that a module computes with, as it was: tensors, parts, and plain attributes.

    A list, or another object that is still the same one, counts as unchanged.
    """

    def __init__(self, module: torch.nn.Module, others: Iterable[torch.Tensor] = ()) -> None:
        """Remember a module as it is now.

        Args:
            others: tensors that it computes with, wherever it has them from.
        """
        self._modules = list(module.modules())
        attributes = [vars(each) for each in self._modules]
        self._attributes = [dict(each) for each in attributes]
        self._members = [tuple(map(dict, _members(each))) for each in attributes]
        own = {id(each): each for each in (*tensors_of(module), *others)}  # mostly the same ones
        self._weights = WatchedWeights(own.values())

    def is_as_before(self) -> bool:
        """Whether nothing of it was replaced, and no tensor has changed."""
        attributes = [*map(vars, self._modules)]
        try:
            with _SAME_TENSORS:
                are_same = attributes == self._attributes
                are_same = are_same and [*map(_members, attributes)] == self._members
        except Exception:  # objects of other libraries may raise anything where they are compared
            return False
        return are_same and self._weights.are_as_before()


class _SameTensors(TorchFunctionMode):
    """Within it, tensors are equal if they are the same object, and cannot be compared else."""

    def __torch_function__(self, *_: Any) -> Any:
        raise ValueError("another tensor")


_SAME_TENSORS = _SameTensors()


def tensors_of(module: torch.nn.Module) -> Iterator[torch.Tensor]:
    """Yield the tensors that a module computes with, also those that are plain attributes."""
    for each in module.modules():
        own = vars(each)
        for held in (own["_parameters"], own["_buffers"], own):
            yield from (value for value in held.values() if isinstance(value, torch.Tensor))


def digest_of(tensors: Sequence[torch.Tensor]) -> str:
    """Return a digest of types, shapes and all elements."""
    digest = hashlib.blake2b(digest_size=16)
    for tensor in tensors:
        digest.update(f"{tensor.dtype} {tuple(tensor.shape)};".encode())
        dense = tensor.detach().cpu().contiguous()
        if dense.numel():
            digest.update(dense.reshape(-1).view(torch.uint8).numpy())
    return digest.hexdigest()


def _reads(tensors: Sequence[torch.Tensor]) -> Iterator[Callable[[], Any]]:
    """Yield what reads some elements of tensors as bits, for each size of an element."""
    addresses: dict[int, list[int]] = {}
    for tensor in tensors:
        if tensor.device.type != "cpu" or not tensor.numel():
            continue
        bytes_each, first = tensor.element_size(), tensor.data_ptr()
        pairs = zip(tensor.shape, tensor.stride(), strict=True)
        last = sum((size - 1) * stride for size, stride in pairs)
        elements = {
            place for at in range(0, last, max(1, last // _PLACES)) for place in (at, at + 1)
        }
        # Complex numbers are two others, and what does not lie at a multiple of its size is read by bytes.
        unit = next(each for each in (8, 4, 2, 1) if not (bytes_each % each or first % each))
        addresses.setdefault(unit, []).extend(
            first + place * bytes_each + part
            for place in sorted(elements | {last})
            for part in range(0, bytes_each, unit)
        )
    for unit, each in addresses.items():
        yield _reader(each, unit)


def _objects(
    tensors: Sequence[torch.Tensor], storages: Sequence[torch.UntypedStorage]
) -> list[int]:
    """Return the addresses of what tensors themselves are in memory."""
    return [
        *(each._cdata + at for each in tensors for at in range(0, _OF_TENSOR, _LINE)),
        *(each._cdata + at for each in storages for at in range(0, _OF_STORAGE, _LINE)),
    ]


def _reader(addresses: Sequence[int], unit: int) -> Callable[[], Any]:
    """Return what reads so many bytes at addresses, which are multiples of it."""
    start = min(addresses, default=0)
    if not addresses:
        return lambda: np.empty(0, np.uint8)
    memory = (ctypes.c_char * (max(addresses) + unit - start)).from_address(start)
    places = np.array([(address - start) // unit for address in addresses])
    return partial(np.frombuffer(memoryview(memory), f"u{unit}").take, places)
