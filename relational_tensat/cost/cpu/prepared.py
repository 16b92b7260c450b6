"""One configuration, ready to be timed: as many copies of it as fill a sample, and what is taken off."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from relational_tensat.cost.cpu.probe import make_probe
from relational_tensat.cost.cpu.quiet import clock_of, thread_us
from relational_tensat.cost.cpu.sampling import Pair
from relational_tensat.cost.cpu.session import prepare
from relational_tensat.cost.device import Configuration
from relational_tensat.tensor import tensors_of

#: So many copies of an operator are run that one sample takes about so long.
_SAMPLE_US = 200.0
_MOST_COPIES = 32
#: The least of so many runs says how many copies that are: the first ones are slow.
_ESTIMATES = 5
#: Tensors of one application together: its weights travel through a protobuf file of 2 GiB at most.
MOST_BYTES = 512 << 20


@dataclass(frozen=True, slots=True)
class Prepared:
    """Two functions whose difference is what ``copies`` applications of an operator take."""

    pair: Pair
    copies: int


def prepare_node(
    configuration: Configuration,
    optimizations: str,
    displace: Callable[[], None],
    most_bytes: int = MOST_BYTES,
    threads: int = 1,
) -> Prepared:
    """Return a configuration ready to be timed.

    Args:
        optimizations: onnxruntime's, ``off`` or ``all``.
        displace: brings the caches into the state that weights find them in; where there are none it is
            not called, for activations have just been computed.
        most_bytes: of the operands of all copies together.
        threads: that each operator is run by.

    Raises:
        Exception: onnxruntime cannot run it, one of ``session.refusals``.
    """
    pair = _pair(configuration, 1, optimizations, displace, threads)
    copies = wanted_copies(_estimate_us(pair), operand_bytes(configuration), most_bytes)
    if copies > 1:
        pair = _pair(configuration, copies, optimizations, displace, threads)
    return Prepared(pair, copies)


def operand_bytes(configuration: Configuration) -> int:
    """Return the bytes of an application's operands and result together."""
    kinds = (*configuration.inputs, configuration.output)
    return sum(part.nbytes for kind in kinds for part in tensors_of(kind))


def leave_caches() -> None:
    """Change nothing."""


def _pair(
    configuration: Configuration,
    copies: int,
    optimizations: str,
    displace: Callable[[], None],
    threads: int,
) -> Pair:
    probe = make_probe(configuration, copies)
    return Pair(
        prepare(probe.with_operator, probe.feeds, optimizations, threads),
        prepare(probe.without, probe.feeds, optimizations, threads),
        displace if probe.with_operator.weights else leave_caches,
        clock_of(threads),
    )


def _estimate_us(pair: Pair) -> float:
    """Return about how much longer one function takes."""
    clock = pair.clock or thread_us
    longer, shorter = (
        min(clock(function) for _ in range(_ESTIMATES)) for function in (pair.longer, pair.shorter)
    )
    return longer - shorter


def wanted_copies(estimate_us: float, needed_bytes: int, most_bytes: int = MOST_BYTES) -> int:
    """Return how many applications fill a sample, as far as their operands fit.

    Args:
        estimate_us: what one takes, about.
        needed_bytes: of its operands and results.
        most_bytes: of those of all copies together.
    """
    most = max(1, min(_MOST_COPIES, most_bytes // max(needed_bytes, 1)))
    return int(np.clip(_SAMPLE_US / max(estimate_us, _SAMPLE_US / most), 1, most))
