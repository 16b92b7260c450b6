"""TASO's protocol buffers: what they say, and what is damaged in them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bench.taso.rule_files import read_rules
from relational_tensat.base.errors import RuleError
from relational_tensat.rules.model import term_text
from tests.bench.taso.encoder import (
    ACT,
    ADD,
    AXIS,
    CONCAT,
    MATMUL,
    NDIM,
    RELU,
    SPLIT,
    Op,
    integer,
    matmul,
    part,
    reassociation,
    rule,
    varint,
)


def refused(tmp_path: Path, data: bytes) -> str:
    path = tmp_path / "subst.pb"
    path.write_bytes(data)
    with pytest.raises(RuleError) as caught:
        read_rules(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    return message.removeprefix(f"{path}: ")


def test_a_rule_is_read(tmp_path: Path) -> None:
    path = tmp_path / "subst.pb"
    path.write_bytes(reassociation() * 2)
    first, second = read_rules(path)
    assert (first.name, second.name) == ("subst-000", "subst-001")
    assert first.law == "(a·b)·c = a·(b·c)"
    assert term_text(first.sources[0]) == "(matmul (matmul ?a ?b) ?c)"
    assert term_text(first.targets[0]) == "(matmul ?a (matmul ?b ?c))"


def test_both_outputs_of_a_split_are_read(tmp_path: Path) -> None:
    relus = [Op(RELU, [(-1, 0)], {}), Op(RELU, [(-2, 0)], {})]
    joined = [
        Op(CONCAT, [(-1, 0), (-2, 0)], {AXIS: 1, NDIM: 2}),
        Op(RELU, [(0, 0)], {}),
        Op(SPLIT, [(1, 0)], {AXIS: 1}),
    ]
    path = tmp_path / "subst.pb"
    path.write_bytes(rule(relus, joined, [(0, 2, 0, 0), (1, 2, 0, 1)]))
    (read,) = read_rules(path)
    split = "(split (relu (concat ?a ?b :axis 1)) :axis 1 :sizes (list (dim ?a 1) (dim ?b 1)))"
    assert [term_text(target) for target in read.targets] == [
        f"(part {split} :index 0)", f"(part {split} :index 1)",
    ]  # fmt: skip
    assert read.symmetric


def test_every_cut_of_a_file_is_refused(tmp_path: Path) -> None:
    data = reassociation()
    assert "has no rules" in refused(tmp_path, data[:1])  # a line break: text
    for length in range(2, len(data)):
        assert "byte" in refused(tmp_path, data[:length])


@pytest.mark.nightly
def test_no_changed_byte_escapes_as_another_error(tmp_path: Path) -> None:
    data = reassociation()
    path = tmp_path / "subst.pb"
    for place in range(len(data)):
        for byte in (0, 5, 127, 255):
            path.write_bytes(data[:place] + bytes([byte]) + data[place + 1 :])
            try:
                read_rules(path)
            except RuleError as error:
                assert "\n" not in str(error)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x0a\xff\x01\x08", r"byte 0: 255 bytes announced, but only 1 follow"),
        (b"\x0d\0\0\0\0", r"byte 0: a 32-bit number, expected an integer or a message"),
        (part(2, b"\x08"), r"byte 0: field 2 of the file, expected only field 1, a rule"),
        (b"\x08" + b"\xff" * 11, r"byte 1: a number of more than 10 bytes"),
        (part(1, b""), r"rule 0: byte 2: has no outputs, expected one or more"),
        (
            rule([matmul(-1, -2)], [matmul(0, -2)], [(0, 0, 0, 0)]),
            r"rule 0: byte \d+: operator 0 out of range, expected one of the 0 before it",
        ),
        (
            rule([matmul(-1, -2)], [matmul(-1, -2)], [(0, 3, 0, 0)]),
            r"rule 0: byte \d+: operator 3 out of range, expected one of the 1 before it",
        ),
        (
            rule([matmul(-1, -2)], [matmul(-1, -2)], [(0, 0, 0, 1)]),
            r"rule 0: byte \d+: output 1 of operator 0 out of range, expected one of its 1",
        ),
        (
            rule([matmul(-1, -2)], [matmul(-1, -2)], [(-1, 0, 0, 0)]),
            r"rule 0: byte \d+: the source of an output is an input, expected an operator",
        ),
        (
            rule([Op(99, [(-1, 0)], {})], [matmul(-1, -2)], [(0, 0, 0, 0)]),
            r"rule 0: byte \d+: unknown operator type 99, expected one of 3 \(conv2d\), .*",
        ),
        (
            rule([Op(ADD, [(-1, 0)], {})], [matmul(-1, -2)], [(0, 0, 0, 0)]),
            r"rule 0: byte \d+: ewadd of 1 tensors, expected 2",
        ),
        (
            rule([Op(MATMUL, [(-1, 0), (-2, 0)], {})], [matmul(-1, -2)], [(0, 0, 0, 0)]),
            r"rule 0: byte \d+: matmul without its parameter act",
        ),
        (
            rule([Op(MATMUL, [(-1, 0), (-2, 0)], {ACT: 7})], [matmul(-1, -2)], [(0, 0, 0, 0)]),
            r"rule 0: matmul with act 7, expected one of 0 \(none\), 1 \(sigmoid\), .*",
        ),
        (
            rule([matmul(-1, -2)], [matmul(-1, -9)], [(0, 0, 0, 0)]),
            r"rule 0: a target uses the input '9', expected only inputs that a source has: 1, 2",
        ),
        (
            part(1, part(1, integer(1, MATMUL) * 2)),
            r"rule 0: byte \d+: type is given twice",
        ),
        (part(1, part(1, b"")), r"rule 0: byte \d+: type is missing"),
        (
            part(1, part(7, b"")),
            r"rule 0: byte \d+: field 7 holds a message, expected fields 1 \(source\), .*",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_is_reported_with_its_place(
    tmp_path: Path, data: bytes, message: str
) -> None:
    assert re.fullmatch(message, refused(tmp_path, data))


def test_shared_operators_do_not_grow_into_a_term_without_end(tmp_path: Path) -> None:
    doubled = [matmul(-1, -1), *(matmul(i, i) for i in range(60))]
    message = refused(tmp_path, rule(doubled, [matmul(-1, -1)], [(60, 0, 0, 0)]))
    assert re.fullmatch(r"rule 0: byte \d+: a term of more than 100 operators", message)


def test_numbers_below_zero_are_ten_bytes() -> None:
    assert len(varint(-1)) == 10  # as TASO writes the inputs of its rules
