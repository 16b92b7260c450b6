"""Graphs that name index variables otherwise than their programs, as Mirage's do, have small tests, too."""

from __future__ import annotations

from dataclasses import replace

import pytest

from relational_tensat.mugraph.graph.dims import dims_of
from relational_tensat.mugraph.graph.mirage_reader import from_mirage
from relational_tensat.mugraph.graph.mugraph import Kernel, MuGraph, Operation
from relational_tensat.mugraph.graph.mugraph_json import decoded, encoded
from relational_tensat.mugraph.programs import ProgramBuilder, program
from relational_tensat.mugraph.verify.small_sizes import with_variables_of
from relational_tensat.mugraph.verify.verification import verify_mugraph
from tests.mugraph.mirage_graphs import saved
from tests.mugraph.mugraphs import flash_attention


def with_own_variables(graph: MuGraph) -> MuGraph:
    """Return FlashAttention whose keys and values have variables of their own, renamed in its block."""
    content = encoded(graph)
    content["inputs"] |= {"K": "i=2 j=4 l=8", "V": "r=2 s=8 e=2"}
    block = content["steps"][0]
    for iterator, names in zip(block["iterators"][1:], (("i", "l"), ("r", "s")), strict=True):
        iterator["imap"] = [names[0] if name else "" for name in iterator["imap"]]
        iterator["fmap"] = names[1]
    renamed = []
    for tile, pairs in (("k", ("ih", "jd", "lk")), ("v", ("rh", "sk"))):
        operand = tile
        for old, new in pairs:
            output = f"{tile}_{new}"
            attrs = {"variable": old, "into": new}
            renamed.append(
                {"op": "rename", "operands": [operand], "output": output, "attrs": attrs}
            )
            operand = output
    last = {"k": "k_k", "v": "v_k"}
    for step in block["steps"]:
        if "operands" in step:
            step["operands"] = [last.get(name, name) for name in step["operands"]]
    block["steps"] = renamed + block["steps"]
    return decoded(content, "with other variables")


def test_variables_that_are_renamed_into_each_other_are_one() -> None:
    attention = program("attention", h=2, q=4, d=4, k=8, e=2)
    own = with_own_variables(flash_attention())
    assert with_variables_of(attention, own) == flash_attention()
    verification = verify_mugraph(attention, own)
    assert verification.passed and verification.small_tests and verification.error == 1e-6


def test_wrong_graphs_are_refused_at_small_sizes() -> None:
    attention = program("attention", h=2, q=4, d=4, k=8, e=2)
    own = with_own_variables(flash_attention())
    (kernel,) = own.kernels
    steps = tuple(
        replace(step, operands=step.operands[::-1])
        if isinstance(step, Operation) and step.op == "div"
        else step
        for step in kernel.block.steps
    )
    wrong = replace(own, steps=(Kernel(kernel.name, replace(kernel.block, steps=steps)),))
    verification = verify_mugraph(attention, wrong)
    assert verification.small_tests and verification.difference is not None


def test_a_tensor_with_two_of_them_keeps_both() -> None:
    """x times its own transpose: i and j are renamed into each other, and the result has both."""
    b = ProgramBuilder("gram", x="i=4 k=8", y="j=4 k=8")
    gram = b.build(b.apply("matmul", "x", "y", over=("k",)))
    renamed = Operation("rename", ("x",), "z", {"variable": "i", "into": "j"})
    product = Operation("matmul", ("x", "z"), "t", {"over": ("k",)})
    square = MuGraph("square", {"x": dims_of("i=4 k=8")}, (renamed, product), ("t",))
    other = replace(square, inputs=square.inputs | {"y": dims_of("j=4 k=8")})
    assert with_variables_of(gram, other) is None


@pytest.mark.parametrize(
    ("name", "known", "has_bound"),
    [("lora", "lora", True), ("rmsnorm_bs1", "rmsnorm_linear", False), ("ntrans_bs1", "ntrans", False)],
)  # fmt: skip
def test_saved_graphs_of_mirage_have_small_tests(name: str, known: str, has_bound: bool) -> None:
    """Each that is right passes them, and LoRA's with the theorem's odds."""
    verification = verify_mugraph(program(known), from_mirage(saved(name)[-1], name))
    assert verification.passed and verification.small_tests
    assert (verification.error is not None) is has_bound
