"""The name that somebody meant."""

from __future__ import annotations

import pytest

from relational_tensat.base.errors import nearest

OPERATORS = ("add", "clip", "cos", "matmul", "mul", "reduce_mean", "relu", "sigmoid", "sub")
FLAGS = ("--cost", "--dim", "--fuse", "--node-limit", "--opset", "--output", "-o", "--verbose")


@pytest.mark.parametrize(
    ("name", "names", "hint"),
    [
        ("matmull", OPERATORS, "; did you mean 'matmul'?"),
        ("Relu", OPERATORS, "; did you mean 'relu'?"),
        ("reduce-mean", OPERATORS, "; did you mean 'reduce_mean'?"),
        ("mean", OPERATORS, "; did you mean 'reduce_mean'?"),
        ("silu", OPERATORS, "; it is written (mul ?x (sigmoid ?x))"),
        ("silu", ("ort-silu", "sub"), "; did you mean 'ort-silu'?"),
        ("silu", ("sub", "sum"), ""),
        ("fuse", ("cube", "fused"), "; did you mean 'fused'?"),
        ("fuse", ("cube", "sub"), ""),
        ("fuse", FLAGS, "; did you mean '--fuse'?"),
        ("--verbos", FLAGS, "; did you mean '--verbose'?"),
        ("--quiet", FLAGS, ""),
        ("-q", FLAGS, ""),
        ("--node_limit", FLAGS, "; did you mean '--node-limit'?"),
        ("--nodes", FLAGS, "; did you mean '--node-limit'?"),
        ("--device", FLAGS, ""),
        ("gpu", ("cpu", "cuda", "t4"), "; did you mean 'cuda'?"),
        ("gpu", ("cpu", "a100", "t4"), "; did you mean 't4'?"),
        ("gpu", ("cpu",), ""),
        ("ilb", ("ilp", "greedy"), "; did you mean 'ilp'?"),
        ("t5", ("a100", "t4"), "; did you mean 't4'?"),
        ("rn", ("run", "sql"), "; did you mean 'run'?"),
        ("limit", ("time-limit", "universe-limit"), "; did you mean 'time-limit'?"),
        ("x", (), ""),
    ],
)
def test_what_is_meant(name: str, names: tuple[str, ...], hint: str) -> None:
    assert nearest(name, names) == hint
