"""Where buffers are placed, against the rule itself, slowly."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from relational_tensat.gpu.memory import ALIGNMENT_BYTES, Lifetime, least_bytes, place


@st.composite
def lifetimes(draw: st.DrawFn) -> list[Lifetime]:
    spans = draw(
        st.lists(st.tuples(st.integers(1, 2000), st.integers(0, 9), st.integers(0, 5)), max_size=12)
    )
    return [Lifetime(f"b{i}", size, at, at + span) for i, (size, at, span) in enumerate(spans)]


@given(lifetimes())
def test_buffers_that_live_at_the_same_time_do_not_overlap(buffers: list[Lifetime]) -> None:
    placement = place(buffers)
    for one, other in combinations(buffers, 2):
        if set(range(one.first, one.last + 1)) & set(range(other.first, other.last + 1)):
            a, b = placement.offsets[one.name], placement.offsets[other.name]
            assert a + one.nbytes <= b or b + other.nbytes <= a
    for buffer in buffers:
        offset = placement.offsets[buffer.name]
        assert offset % ALIGNMENT_BYTES == 0
        assert offset + buffer.nbytes <= placement.total_bytes
    assert placement.total_bytes >= least_bytes(buffers)


def test_what_is_no_longer_needed_is_used_again() -> None:
    chain = [Lifetime(f"b{i}", 1024, i, i + 1) for i in range(10)]
    assert place(chain).total_bytes == 2 * 1024 == least_bytes(chain)
    assert place([]).total_bytes == 0
