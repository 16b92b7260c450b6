"""A certificate holds as it was written; whatever is changed in it, or in its files, it does not."""

from __future__ import annotations

import copy
import json
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from relational_tensat import Options, VerificationError, optimize
from relational_tensat.base.errors import InputError, RelationalTensatError
from relational_tensat.certificate import certificate_schema
from relational_tensat.certificate.check import check_certificate
from relational_tensat.certificate.equations import read_rule
from relational_tensat.certificate.proof_file import (
    certificate_of,
    model_file,
    read_certificate,
)
from relational_tensat.formats import save_model
from relational_tensat.rules.backends.backend import all_rule_files
from relational_tensat.rules.library import read_rule_file
from relational_tensat.rules.model import rule_text
from relational_tensat.rules.soundness.store import content_hash
from relational_tensat.tensor import Node, build_graph
from tests.graphs import shared_matmuls

BLOCK = Path(__file__).parents[2] / "bench" / "inputs" / "encoder_block.onnx"
_Json = dict[str, Any]

#: Places that nothing rests on: names of files, versions, what only a search can know. A gain that was
#: modelled has no interval, no input here has a default value, and another format is refused before.
#: Errors are stated up to a factor.
_FREE = {
    ("format",), ("made",), ("reading", "keep_overridable"),
    ("original", "name"), ("result", "name"),
    ("figures", "profile"), ("figures", "e_nodes"), ("figures", "e_classes"),
    ("figures", "low"), ("figures", "high"), ("numbers", "float64"), ("numbers", "runtime"),
}  # fmt: skip


class _Proved:
    """A model, its result and the certificate, in a folder."""

    def __init__(self, original: Path, folder: Path, options: Options) -> None:
        self.original, self.result = original, folder / f"result{original.suffix}"
        self.file = folder / "proof.json"
        optimize(original, options.replace(certificate=self.file), output=self.result)
        self.content: _Json = json.loads(self.file.read_text("utf-8"))

    def check(self, content: _Json | None = None, **more: bool) -> None:
        """Check a certificate of the two files."""
        stated = certificate_of(self.content if content is None else content)
        check_certificate(stated, self.original, self.result, **more)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> _Proved:
    folder = tmp_path_factory.mktemp("small")
    save_model(shared_matmuls(with_data=True), folder / "model.json")
    return _Proved(folder / "model.json", folder, Options.of(cost="t4", search="saturation"))


@pytest.fixture(scope="module")
def block(tmp_path_factory: pytest.TempPathFactory) -> _Proved:
    options = Options.of(runs_on="onnxruntime", effort="low", search="saturation")
    return _Proved(BLOCK, tmp_path_factory.mktemp("block"), options)


def test_it_holds_as_it_was_written_and_follows_its_schema(small: _Proved, block: _Proved) -> None:
    for proved in (small, block):
        assert len(proved.content["steps"]) >= 1
        jsonschema.validate(proved.content, certificate_schema())
        proved.check()


def test_a_run_with_a_database_has_a_certificate_too(tmp_path: Path) -> None:
    save_model(shared_matmuls(with_data=True), tmp_path / "model.json")
    options = Options.of(cost="t4", search="saturation", db=tmp_path / "run.duckdb")
    _Proved(tmp_path / "model.json", tmp_path, options).check()


def test_the_check_needs_no_database_no_solver_and_no_search() -> None:
    code = (
        "import sys, relational_tensat.certificate.check\n"
        "known = ('duckdb', 'highspy', 'pyarrow', 'rich', 'hypothesis')\n"
        "rooms = ('egraph', 'explore', 'extract', 'explain', 'mugraph', 'view', 'run')\n"
        "names = (*known, *(f'relational_tensat.{room}' for room in rooms))\n"
        "print([name for name in names if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


def test_rules_are_read_as_the_search_reads_them() -> None:
    """The search's own reader is the oracle: both find the same content in every rule that ships."""
    rules = [rule for file in all_rule_files() for rule in read_rule_file(file)]
    assert len(rules) > 800
    for rule in rules:
        read = read_rule(rule_text(rule), rule.name)
        assert (content_hash(read), read.law) == (content_hash(rule), rule.law)


@pytest.mark.parametrize(
    "text",
    ["", "(rule it\n", "(rule it\n (law \"x\")\n (from (add ?a ?b)) (to (nothing ?a)))", "(rule it\n [)"],
)  # fmt: skip
def test_what_is_no_rule_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(InputError, match="the rule 'it' cannot be read"):
        read_rule(text, "it")


def _leaves(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the places of all numbers, texts and truths."""
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _leaves(item, (*place, key))
    else:
        yield place


def _is_free(place: tuple[Any, ...]) -> bool:
    return any(place[: len(free)] == free for free in _FREE)


def _other(value: Any) -> Any:
    """Return another value of the same type, the least different one that is not the same."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return value * 1.001 if value else 0.5
    return 1.0 if value is None else f"{value[:-1]}{'b' if value[-1:] == 'a' else 'a'}"


def _changed_at(content: _Json, place: tuple[Any, ...]) -> _Json:
    changed = copy.deepcopy(content)
    inner: Any = changed
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = _other(inner[place[-1]])
    return changed


def _check_leaves(proved: _Proved, count: int) -> None:
    """Change one leaf after another: each time the check has to fail, if the term is one that is used."""
    places = [place for place in _leaves(proved.content) if not _is_free(place)]
    drawn = places if len(places) <= count else random.Random(0).sample(places, count)
    for place in drawn:
        try:
            proved.file.write_text(json.dumps(_changed_at(proved.content, place)), "utf-8")
            check_certificate(read_certificate(proved.file), proved.original, proved.result)
        except RelationalTensatError:
            continue
        pytest.fail(f"{place} may be changed unnoticed")


def test_no_part_of_it_may_be_changed(small: _Proved) -> None:
    _check_leaves(small, 40)


@pytest.mark.nightly
def test_no_part_of_larger_ones_may_be_changed(small: _Proved, block: _Proved) -> None:
    _check_leaves(small, 10_000)
    _check_leaves(block, 400)


def _swap_rules(content: _Json) -> None:
    """Say of one step that another rule made it, with that one's text under its name."""
    names = sorted({step["rule"] for step in content["steps"]})
    first = content["steps"][0]
    first["rule"] = next(name for name in names if name != first["rule"])


def _drop_step(content: _Json) -> None:
    del content["steps"][len(content["steps"]) // 2]


def _skip_to_the_end(content: _Json) -> None:
    content["steps"] = content["steps"][-1:]


def _keep_start(content: _Json) -> None:
    content["steps"] = []
    content["figures"] |= {"basis": "kept", "speedup": 1.0}


def _weaken_rule(content: _Json) -> None:
    """Leave the conditions of a rule out, and say that it is one's own."""
    name = next(name for name, rule in content["rules"].items() if "(where" in rule["text"])
    rule = content["rules"][name]
    rule["text"] = rule["text"][: rule["text"].index("(where")].rstrip() + ")"
    rule["kind"] = "own"


def _call_it_a_kernel(content: _Json) -> None:
    _weaken_rule(content)
    for rule in content["rules"].values():
        rule["kind"] = rule["kind"].replace("own", "kernel")


def _call_it_nothing(content: _Json) -> None:
    _weaken_rule(content)
    for rule in content["rules"].values():
        rule["kind"] = rule["kind"].replace("own", "")


def _claim_more(content: _Json) -> None:
    content["figures"]["speedup"] *= 1.5


def _claim_optimality(content: _Json) -> None:
    content["figures"]["gap"] = 0.5


def _claim_a_measurement(content: _Json) -> None:
    content["figures"] |= {"basis": "measured", "low": 1.4, "high": 1.2}


def _claim_other_errors(content: _Json) -> None:
    content["numbers"]["runtime"] = 1e-4


def _claim_other_errors_of_steps(content: _Json) -> None:
    content["numbers"]["float64"] = 1e-7


@pytest.mark.parametrize(
    "forge",
    [
        _swap_rules, _drop_step, _skip_to_the_end, _keep_start, _weaken_rule, _call_it_a_kernel,
        _call_it_nothing, _claim_more,
        _claim_optimality, _claim_a_measurement, _claim_other_errors,
        _claim_other_errors_of_steps,
    ],
)  # fmt: skip
def test_a_forged_certificate_does_not_hold(forge: Callable[[_Json], None], block: _Proved) -> None:
    content = copy.deepcopy(block.content)
    forge(content)
    with pytest.raises(VerificationError) as caught:
        block.check(content)
    assert "makes no sense" not in str(caught.value)


def test_one_changed_byte_of_a_file_does_not_hold(block: _Proved, tmp_path: Path) -> None:
    changed = bytearray(block.result.read_bytes())
    changed[len(changed) // 2] ^= 1
    other = tmp_path / "other.onnx"
    other.write_bytes(changed)
    with pytest.raises(VerificationError, match="SHA-256"):
        check_certificate(certificate_of(block.content), block.original, other)


def test_another_file_whose_digest_is_made_to_fit_does_not_hold(
    block: _Proved, tmp_path: Path
) -> None:
    import onnx  # what is written here is what anybody can write
    from onnx import numpy_helper

    model = onnx.load(block.result)
    weights = [each for each in model.graph.initializer if len(each.dims) == 2]
    array = numpy_helper.to_array(weights[0]).copy()
    array[0, 0] += np.float32(0.01)
    weights[0].CopyFrom(numpy_helper.from_array(array, weights[0].name))
    other = tmp_path / "other.onnx"
    onnx.save(model, other)
    content = copy.deepcopy(block.content)
    found = model_file(other)
    content["result"] |= {"sha256": found.sha256, "bytes": found.bytes}
    with pytest.raises(VerificationError, match="numbers differ"):
        check_certificate(certificate_of(content), block.original, other)


def test_own_rules_are_taken_by_their_numbers_if_that_is_asked_for(tmp_path: Path) -> None:
    rules = tmp_path / "own.rules"
    rules.write_text(
        '(rule relu-thrice (law "relu(relu(relu(x))) = relu(x)")'
        " (from (relu (relu (relu ?x)))) (to (relu ?x)))\n"
    )
    graph = shared_matmuls(with_data=True)
    thrice = [*graph.nodes, Node("relu", ("y",), ("z",))]
    save_model(
        build_graph("thrice", graph.inputs, graph.weights, thrice, ["z"]), tmp_path / "model.json"
    )
    proved = _Proved(tmp_path / "model.json", tmp_path, Options.of(cost="t4", rules=(rules,)))
    with pytest.raises(VerificationError, match="--own-rules"):
        proved.check()
    proved.check(allow_own_rules=True)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"format": 2}', '{"format": 1}', '{"format": 1, "terms": [[5]]}']
)
def test_what_is_no_certificate_is_refused_in_one_line(text: str, tmp_path: Path) -> None:
    path = tmp_path / "proof.json"
    path.write_text(text)
    with pytest.raises(InputError, match=r"proof.json: "):
        read_certificate(path)
