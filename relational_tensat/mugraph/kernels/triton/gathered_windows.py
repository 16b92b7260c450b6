"""Windows of tiles in Triton: elements are gathered along an axis, since registers have no parts."""

from __future__ import annotations

from relational_tensat.base.errors import InputError
from relational_tensat.mugraph.graph.dims import Dim
from relational_tensat.mugraph.graph.input_windows import Window
from relational_tensat.mugraph.kernels.triton.tensors import Axes, Value, real


def windowed(value: Value, window: Window, axes: Axes, where: str) -> Value:
    """Return a window of a tensor.

    Args:
        value: the tensor.
        window: of one variable at most, with one at most of its own.
        axes: lengths of axes, and the names of indices.
        where: named in errors.

    Raises:
        InputError: it is along several variables.
    """
    taken = [dim for dim in value.axes if dim.variable in window.variables]
    into = real(tuple(map(Dim, window.into, window.sizes)))
    if len(window.variables) > 1 or len(into) > 1:
        raise InputError(f"{where}: Triton takes no window of several variables at once")
    if not taken:  # of one element, or of elements that are all the same
        return _bounded(value, window, (*value.axes, *into), axes) if window.is_bounded else value
    (old,) = taken
    place = value.axes.index(old)
    if not into:
        chosen = f"tl.where({axes.along(old, value.axes)} == {window.offset}, {value.wide}, 0.0)"
        rest = tuple(dim for dim in value.axes if dim != old)
        return Value(f"tl.sum({chosen}, axis={place})", rest, True)
    (new,) = into
    moved = (*value.axes[:place], new, *value.axes[place + 1 :])
    index = axes.along(new, moved)
    index = index if window.step == 1 else f"{window.step} * {index}"
    index = f"{window.offset} + {index}" if window.offset else index
    ends = [window.offset + window.step * last for last in (0, axes.length(new) - 1)]
    if min(ends) < 0 or max(ends) >= axes.length(old):
        index = f"tl.minimum(tl.maximum({index}, 0), {axes.length(old) - 1})"
    indices = f"tl.broadcast_to({index}, {axes.shape(moved)})"
    gathered = Value(f"tl.gather({value.text}, {indices}, axis={place})", moved, value.is_wide)
    return _bounded(gathered, window, moved, axes)


def _bounded(value: Value, window: Window, axes: tuple[Dim, ...], lengths: Axes) -> Value:
    """Return a tensor that is zero where the window is, its padding included."""
    (new,) = real(tuple(map(Dim, window.into, window.sizes)))
    index = lengths.along(new, axes)
    conditions = [f"({index} >= {window.first})"] if window.first else []
    conditions += [f"({index} < {window.last})"] if window.last < lengths.length(new) else []
    if not conditions:
        return value
    text = f"tl.where({' & '.join(conditions)}, {lengths.aligned(value, axes, value.text)}, 0.0)"
    return Value(text, axes, value.is_wide)
