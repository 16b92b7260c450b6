"""The cache of searches: it returns what was found, to equal searches by the same code only."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from relational_tensat.base.errors import InputError
from relational_tensat.mugraph import candidate_cache, kernel_finder
from relational_tensat.mugraph.candidate_cache import CandidateCache, SizedCandidates
from relational_tensat.mugraph.graph.mugraph import MuGraph
from relational_tensat.mugraph.kernel_finder import find_kernels
from relational_tensat.mugraph.programs import program
from relational_tensat.mugraph.search.search_options import SearchOptions
from relational_tensat.mugraph.sizes.splits import Sized
from relational_tensat.mugraph.sizes.waves import Multiprocessors, a100

SIZES = {"m": 16, "k": 64, "r": 16, "n": 64}


def found() -> SizedCandidates:
    """Return what the search finds for a small MLP."""
    return kernel_finder.searched(program("mlp", **SIZES), SearchOptions(max_kernels=1))


def count_searches(monkeypatch: pytest.MonkeyPatch) -> list[MuGraph]:
    """Return a list that grows by each search; all return the result of one that was made before."""
    made, result = [], found()

    def search(wanted: MuGraph, *others: object) -> SizedCandidates:
        made.append(wanted)
        return result

    monkeypatch.setattr(kernel_finder, "searched", search)
    return made


def test_an_equal_search_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, cache = count_searches(monkeypatch), CandidateCache(tmp_path / "kernels")
    mlp, options = program("mlp", **SIZES), SearchOptions(max_kernels=1)
    first = find_kernels(mlp, options, cache=cache)
    again = find_kernels(mlp, replace(options, time_limit_s=5.0), cache=cache)
    assert len(made) == 1
    assert first.best == again.best and first.verification == again.verification
    assert not first.result.is_kept and again.result.is_kept
    kept = candidate_cache.MOST_KEPT
    assert again.result == replace(first.result, is_kept=True, graphs=first.result.graphs[:kept])
    find_kernels(mlp, options)
    assert len(made) == 2


def test_another_search_is_not_taken_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, mlp = CandidateCache(tmp_path), program("mlp", **SIZES)
    options, candidates = SearchOptions(max_kernels=1), found()
    cache.keep(mlp, options, None, candidates)
    assert cache.find(mlp, options, a100()) is not None
    assert cache.find(program("mlp"), options) is None
    assert cache.find(mlp, replace(options, max_operators=5)) is None
    assert cache.find(mlp, replace(options, disable=("merging",))) is None
    assert cache.find(mlp, options, Multiprocessors(a100().profile, "float32")) is None
    cache.keep(mlp, replace(options, seed=3), None, replace(candidates, is_complete=False))
    assert cache.find(mlp, replace(options, seed=3)) is None
    monkeypatch.setattr(candidate_cache, "_code_hash", lambda: "other code")
    assert cache.find(mlp, options) is None


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda text: "[]",
        lambda text: json.dumps({**json.loads(text), "graphs": [{"cost_us": 1.0}]}),
        lambda text: json.dumps({**json.loads(text), "levels": [{"jobs": 1}]}),
    ],
)
def test_a_damaged_file_is_as_good_as_none(tmp_path: Path, damage: Callable[[str], str]) -> None:
    cache, mlp, options = CandidateCache(tmp_path), program("mlp"), SearchOptions(max_kernels=1)
    cache.keep(mlp, options, None, found())
    (file,) = tmp_path.iterdir()
    file.write_text(damage(file.read_text("utf-8")), encoding="utf-8")
    assert cache.find(mlp, options) is None


def test_what_is_wrong_in_a_file_is_refused_and_searched_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, cache = count_searches(monkeypatch), CandidateCache(tmp_path)
    mlp, options = program("mlp", **SIZES), SearchOptions(max_kernels=1)
    right = find_kernels(mlp, options, cache=cache)
    wrong = [Sized(_without_relu(kept.graph), kept.cost_us) for kept in right.result.graphs[:3]]
    cache.keep(mlp, options, None, replace(right.result, graphs=tuple(wrong)))
    assert find_kernels(mlp, options, cache=cache).best == right.best
    assert len(made) == 2


def test_a_folder_that_cannot_be_made_is_one_line_that_names_the_variable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"cannot be made: .*RELATIONAL_TENSAT_CACHE"):
        CandidateCache(tmp_path / "file" / "kernels")


def _without_relu(graph: MuGraph) -> MuGraph:
    (kernel,) = graph.kernels
    text = json.dumps(candidate_cache.encoded(graph)).replace('"relu"', '"neg"')
    return candidate_cache.decoded(json.loads(text), kernel.name)
