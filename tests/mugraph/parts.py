"""Models whose operators take parts of values, and join parts."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from relational_tensat.cost.profile import PROFILE_DIR
from relational_tensat.tensor import Graph, Node, TensorType, Weight, build_graph

HEADS, WIDTH, TOKENS = 2, 16, 16
_ROW = HEADS * WIDTH


def of_floats(*shape: int, dtype: str = "float32") -> TensorType:
    return TensorType(dtype, shape)


def t4_that_copies(folder: Path) -> str:
    """Return a profile like t4 that copies parts: under t4 they cost nothing, in a kernel or beside it."""
    path = folder / "t4_that_copies.toml"
    text = (PROFILE_DIR / "t4.toml").read_text(encoding="utf-8")
    path.write_text(text.replace("views = ", "# "), encoding="utf-8")
    return str(path)


def cut(source: str, output: str, axis: int, start: int, end: int, step: int = 1) -> Node:
    attrs = {"axes": (axis,), "starts": (start,), "ends": (end,), "steps": (step,)}
    return Node("slice", (source,), (output,), attrs)


def joint_attention(kind: str) -> Graph:
    """Attention of queries, keys and values in one tensor, as GPT-2 splits it, or ViT gathers it."""
    nodes: list[Node] = []
    weights: dict[str, Weight] = {}
    if kind == "split":
        nodes.append(Node("split", ("x",), ("q", "k", "v"), {"axis": 1, "sizes": (_ROW,) * 3}))
    elif kind == "slice":
        nodes += [cut("x", name, 1, n * _ROW, (n + 1) * _ROW) for n, name in enumerate("qkv")]
    else:
        shape = (TOKENS, 3, HEADS, WIDTH)
        nodes += [
            Node("reshape", ("x",), ("all",), {"shape": shape}),
            Node("transpose", ("all",), ("first",), {"perm": (1, 0, 2, 3)}),
        ]
        for place, name in enumerate("qkv"):
            weights[f"i{place}"] = Weight(TensorType("int64", ()), np.asarray(place))
            nodes.append(Node("gather", ("first", f"i{place}"), (f"{name}_rows",), {"axis": 0}))
    for name in "qkv":
        if kind != "gather":
            shape = (TOKENS, HEADS, WIDTH)
            nodes.append(Node("reshape", (name,), (f"{name}_rows",), {"shape": shape}))
        perm = (1, 2, 0) if name == "k" else (1, 0, 2)
        nodes.append(Node("transpose", (f"{name}_rows",), (f"{name}_heads",), {"perm": perm}))
    nodes += [
        Node("matmul", ("q_heads", "k_heads"), ("scores",)),
        Node("softmax", ("scores",), ("weights",), {"axis": 2}),
        Node("matmul", ("weights", "v_heads"), ("mixed",)),
        Node("transpose", ("mixed",), ("turned",), {"perm": (1, 0, 2)}),
        Node("reshape", ("turned",), ("y",), {"shape": (TOKENS, _ROW)}),
    ]
    return build_graph(f"joint_{kind}", {"x": of_floats(TOKENS, 3 * _ROW)}, weights, nodes, ["y"])


def rotary(heads: int = 4, tokens: int = 8, width: int = 16) -> Graph:
    """Rotary embeddings, as LLaMA's exports have them: the halves change places, one with another sign."""
    half = width // 2
    nodes = [
        cut("x", "low", 2, 0, half),
        cut("x", "high", 2, half, width),
        Node("neg", ("high",), ("minus",)),
        Node("concat", ("minus", "low"), ("turned",), {"axis": 2}),
        Node("mul", ("turned", "sin"), ("a",)),
        Node("mul", ("x", "cos"), ("b",)),
        Node("add", ("b", "a"), ("y",)),
    ]
    kinds = {"x": of_floats(heads, tokens, width)}
    kinds |= {name: of_floats(tokens, width) for name in ("sin", "cos")}
    return build_graph("rotary", kinds, {}, nodes, ["y"])


def gated(kind: str) -> Graph:
    """One half of each row times the sigmoid of the other, as gated linear units end."""
    weights = {
        f"i{place}": Weight(TensorType("int64", ()), np.asarray(place))
        for place in range(2)
        if kind == "gather"
    }
    if kind == "split":
        nodes = [Node("split", ("x",), ("a", "b"), {"axis": 1, "sizes": (64, 64)})]
    else:
        nodes = [Node("reshape", ("x",), ("both",), {"shape": (32, 2, 64)})]
        nodes += [
            Node("gather", ("both", f"i{place}"), (name,), {"axis": 1})
            for place, name in enumerate("ab")
        ]
    nodes += [Node("sigmoid", ("b",), ("gate",)), Node("mul", ("a", "gate"), ("y",))]
    return build_graph(f"gated_{kind}", {"x": of_floats(32, 128)}, weights, nodes, ["y"])


def joined_product() -> Graph:
    """[A ‖ B]·W, as a model that joins features has it."""
    nodes = [
        Node("concat", ("a", "b"), ("both",), {"axis": 1}),
        Node("matmul", ("both", "w"), ("y",)),
    ]
    kinds = {"a": of_floats(16, 32), "b": of_floats(16, 16), "w": of_floats(48, 32)}
    return build_graph("joined", kinds, {}, nodes, ["y"])


def cast_norm() -> Graph:
    """A root mean square in float32 of what is float16, as LLaMA's exports have it."""
    number = Weight(of_floats(), np.asarray(2.0, "float32"))
    epsilon = Weight(of_floats(), np.asarray(1e-5, "float32"))
    nodes = [
        Node("cast", ("x",), ("wide",), {"dtype": "float32"}),
        Node("pow", ("wide", "two"), ("squares",)),
        Node("reduce_mean", ("squares",), ("mean",), {"axes": (1,), "keepdims": True}),
        Node("add", ("mean", "epsilon"), ("shifted",)),
        Node("sqrt", ("shifted",), ("size",)),
        Node("div", ("wide", "size"), ("unit",)),
        Node("cast", ("unit",), ("narrow",), {"dtype": "float16"}),
        Node("mul", ("narrow", "gain"), ("y",)),
    ]
    kinds = {"x": of_floats(8, 64, dtype="float16"), "gain": of_floats(64, dtype="float16")}
    return build_graph("cast_norm", kinds, {"two": number, "epsilon": epsilon}, nodes, ["y"])


def joined_products(axis: int = 1) -> Graph:
    """Products of one factor, joined along the dim of the others."""
    kinds = {"x": of_floats(16, 16), "v": of_floats(16, 16), "w": of_floats(16, 16)}
    factors = [("x", name) if axis else (name, "x") for name in "vw"]
    nodes = [
        Node("matmul", factors[0], ("p",)),
        Node("matmul", factors[1], ("q",)),
        Node("concat", ("p", "q"), ("y",), {"axis": axis}),
    ]
    return build_graph(f"joined_products_{axis}", kinds, {}, nodes, ["y"])
