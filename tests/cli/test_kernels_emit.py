"""``kernels emit``: code, plans, and what compilers say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from relational_tensat.cli.main import main
from relational_tensat.mugraph.graph.mugraph_json import save_mugraph
from relational_tensat.mugraph.programs import program
from tests.gpu.test_nvrtc import needs_nvrtc
from tests.mugraph.kernels.mugraphs import attention, ntrans

PLAN = """\
kernel ntrans: 1600 bytes of shared memory
    when     barrier   statement   writes                         reads        threads go over
────────────────────────────────────────────────────────────────────────────────────────────────────────
0   before             load        H_rows                                                           m n
1   before             load        X_rows                                                           m n
2   before             load        alpha_rows                                                       m n
3   before   yes       reduce      norm_squares, norm_squares_partials    H_rows
4   before   yes       compute     norm                           norm_squares                      m
5   before   yes       reduce      size_squares, size_squares_partials    H_rows, X_rows, alpha_rows, norm
6   before   yes       compute     size                           size_squares                      m
7   after    yes       save        Y                        H_rows, X_rows, alpha_rows, norm, size  m n
"""


@pytest.fixture
def saved(tmp_path: Path) -> str:
    save_mugraph(ntrans(), tmp_path / "ntrans.json")
    return str(tmp_path / "ntrans.json")


def _words(text: str) -> list[str]:
    return text.replace("─", "").split()


def test_every_target(saved: str, capsys: pytest.CaptureFixture[str]) -> None:
    expected = {
        "triton": "@triton.jit",
        "cuda": '#include "fused.cuh"',
        "c": "void kernel_ntrans(const",
    }
    for target, words in expected.items():
        assert main(["kernels", "emit", saved, "--target", target]) == 0
        assert words in capsys.readouterr().out


def test_a_plan(saved: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kernels", "emit", saved, "--target", "cuda", "--plan"]) == 0
    printed = capsys.readouterr().out
    assert _words(printed.partition("tensor")[0]) == _words(PLAN)
    proof = "choices (integer program, proven); rows as the model has them: "
    assert proof in printed.replace("\n", " ")
    assert main(["kernels", "emit", saved, "--target", "cuda", "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    layouts, (kernel,) = content["layouts"], content["kernels"]
    assert layouts["clocks"] == layouts["bound"] <= layouts["plain_clocks"]
    assert [row["waits"] for row in kernel["plan"]] == [False] * 3 + [True] * 5
    assert {place["tensor"] for place in kernel["places"]} >= {
        "H_rows",
        "norm",
        "size_squares_partials",
    }


@needs_nvrtc
def test_what_the_compiler_says(saved: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kernels", "emit", saved, "--target", "cuda", "--arch", "sm_90", "--json"]) == 0
    (kernel,) = json.loads(capsys.readouterr().out)["kernels"]
    assert kernel["compiled"]["shared_bytes"] == 1600
    assert kernel["compiled"]["spilled_bytes"] == 0
    assert 0 < kernel["compiled"]["registers"] <= 64


def test_what_cannot_be_is_refused_in_one_line(
    saved: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save_mugraph(attention(), tmp_path / "attention.json")
    save_mugraph(program("lora"), tmp_path / "lora.json")
    products, library = str(tmp_path / "attention.json"), str(tmp_path / "lora.json")
    for arguments, code, message in (
        ([products, "--target", "c"], 3, "flash_attention: s is a product, which no C is made of"),
        ([library], 3, "lora: a program of library operators, it has no kernels"),
        ([saved, "--target", "c", "--dtype", "float16"], 2, "elements of float32, not float16"),
        ([saved, "--plan"], 2, "--plan goes with --target cuda: triton places nothing itself"),
        (
            [saved, "--target", "c", "--arch", "sm_90"],
            2,
            "--arch goes with --backend cuda or triton",
        ),
    ):
        assert main(["kernels", "emit", *arguments]) == code
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1
