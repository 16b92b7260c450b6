"""The name that somebody meant: by a table of what people write for it, and by spelling."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

#: Words that people write, and our words for them; the first that exists is suggested. A flag may have a
#: value, a command may have flags.
_MEANT: dict[str, tuple[str, ...]] = {
    # places and sources of costs
    "ort": ("onnxruntime", "--for onnxruntime", "cpu"),
    "onnx-runtime": ("onnxruntime", "--for onnxruntime", "cpu"),
    "onnxruntime": ("--for onnxruntime", "cpu"),
    "cpu": ("onnxruntime", "--for onnxruntime"),
    "host": ("onnxruntime", "cpu"),
    "gpu": ("cuda", "--for cuda", "t4"),
    "nvidia": ("cuda", "--for cuda", "t4"),
    "cudnn": ("cuda", "--for cuda"),
    "cuda": ("--for cuda", "t4"),
    "t4": ("--for t4",),
    "a100": ("--for a100",),
    "h100": ("--for h100",),
    # flags
    "device": ("--for",),
    "backend": ("--backend", "--for"),
    "provider": ("--for",),
    "hardware": ("--for",),
    "out": ("--output",),
    "outfile": ("--output",),
    "output-file": ("--output",),
    "timeout": ("--time-limit",),
    "time": ("--time-limit",),
    "max-time": ("--time-limit",),
    "nodes": ("--node-limit",),
    "max-nodes": ("--node-limit",),
    "iters": ("--iterations",),
    "k-multi": ("--multi-iterations",),
    "batch": ("--dim",),
    "batch-size": ("--dim",),
    "shape": ("--dim",),
    "input-shape": ("--dim",),
    "size": ("--dim",),
    "debug": ("--verbose",),
    "silent": ("--quiet",),
    "html": ("--view", "view"),
    "report": ("--view", "view"),
    "page": ("--view", "view"),
    "database": ("--db",),
    "duckdb": ("--db",),
    "overwrite": ("--force",),
    "fusion": ("--fuse", "run MODEL --fuse"),
    "fuse": ("--fuse", "run MODEL --fuse"),
    "optimization-level": ("--effort",),
    "level": ("--effort",),
    "j": ("--threads", "--on"),
    "jobs": ("--threads",),
    "num-threads": ("--threads",),
    "workers": ("--threads", "--on"),
    # commands
    "optimize": ("run",),
    "optimise": ("run",),
    "opt": ("run",),
    "compile": ("run",),
    "simplify": ("run",),
    "query": ("sql",),
    "tables": ("schema",),
    "stats": ("inspect",),
    "info": ("inspect",),
    "why": ("explain",),
    "why-not": ("explain",),
    "visualize": ("view",),
    "demo": ("example",),
    "sample": ("example",),
    "cache": ("costs",),
    "serve": ("view DB --serve",),
    "find": ("search",),
    # operators
    "linear": ("matmul",),
    "gemm": ("matmul",),
    "dense": ("matmul",),
    "mean": ("reduce_mean",),
    "average": ("reduce_mean",),
    "permute": ("transpose",),
    "view": ("reshape",),
    "negate": ("neg",),
    "multiply": ("mul",),
    "subtract": ("sub",),
    "divide": ("div",),
    "cat": ("concat",),
    "groupnorm": ("layer_norm",),
}

#: Operators that are written with others, and one of these.
_WRITTEN = {
    "silu": ("sigmoid", "(mul ?x (sigmoid ?x))"),
    "swish": ("sigmoid", "(mul ?x (sigmoid ?x))"),
    "relu6": ("clip", "(clip ?x :min 0.0 :max 6.0)"),
    "softplus": ("log", "(log (add 1 (exp ?x)))"),
    "rsqrt": ("reciprocal", "(reciprocal (sqrt ?x))"),
    "square": ("mul", "(mul ?x ?x)"),
}


def suggestion(name: str, names: Sequence[str]) -> str:
    """Return ``"; did you mean 'x'?"``, or ``""`` where no name is near."""
    word = _plain(name)
    written, text = _WRITTEN.get(word, ("", ""))
    plain = {_plain(other): other for other in names}
    if word in plain:
        return f"; did you mean {plain[word]!r}?"
    if written in names:
        return f"; it is written {text}"
    for meant in _MEANT.get(word, ()):
        if meant.partition(" ")[0] in names:
            return f"; did you mean {meant!r}?"
    near = difflib.get_close_matches(word, list(plain), n=1, cutoff=_cutoff(word))
    near = near or sorted((other for other in plain if _has_part(other, word)), key=len)[:1]
    return f"; did you mean {plain[near[0]]!r}?" if near else ""


def _plain(name: str) -> str:
    """Return a name without what it may be written with or without."""
    return name.lower().lstrip("-").replace("_", "-")


def _cutoff(word: str) -> float:
    """Return how alike a name must be: to a short word, in all but one letter; to a known word, more."""
    if word in _MEANT or word in _WRITTEN:
        return 0.85
    return {1: 1.0, 2: 0.5, 3: 0.65, 4: 0.74}.get(len(word), 0.6)


def _has_part(other: str, word: str) -> bool:
    """Whether a word stands in a name between its hyphens, as ``silu`` in ``ort-silu``."""
    return len(word) > 2 and f"-{word}-" in f"-{other}-"
