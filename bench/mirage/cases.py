"""Mirage's benchmarks: programs with their shapes, and what its paper reports of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from relational_tensat.mugraph.graph.mugraph import MuGraph
from relational_tensat.mugraph.programs import program


@dataclass(frozen=True, slots=True)
class Case:
    """One benchmark.

    Attributes:
        name: as the paper has it, with the phase and the batch.
        program: the name of the program.
        sizes: of its index variables.
        max_operators: of a block; the paper's 7 but where a program needs more.
        published: what the paper reports of its speed, on an A100; empty for nothing.
        published_search: what is reported of its search; empty for nothing.
    """

    name: str
    program: str
    sizes: Mapping[str, int] = field(default_factory=dict)
    max_operators: int = 7
    published: str = ""
    published_search: str = "up to 6 h"

    def build(self) -> MuGraph:
        """Return the program at these sizes."""
        return program(self.program, **self.sizes)


@dataclass(frozen=True, slots=True)
class _Attention:
    """Attention of a model (Table 4): heads with keys of their own, queries that share them, width."""

    heads: int
    queries: int
    width: int
    published: str
    published_search: str = "up to 6 h"


#: LLaMA-7B, a quarter of LLaMA-2-70B (it is split among four GPUs), Falcon-7B.
_ATTENTION = {
    "MHA": _Attention(32, 1, 128, "on par with FlashDecoding"),
    "GQA": _Attention(2, 8, 128, "up to 3.5x", "76 min"),
    "MQA": _Attention(1, 71, 64, "up to 1.7x"),
}
#: New tokens by phase (section 7.2), and the tokens before them.
_TOKENS = {"incremental": 1, "speculative": 32, "prefill": 512}
_KEYS = 4096


def cases() -> Iterator[Case]:
    """Yield the benchmarks: attention in three phases, MLP, MoE, LoRA at two batches, and the others.

    The paper divides scores by √d (scaled: one new token), and adds a residual to the MLP. Such rows stand
    beside those without, which earlier runs have.
    """
    for batch in (1, 8):
        for name, model in _ATTENTION.items():
            for phase, tokens in _TOKENS.items():
                width, heads, queries = model.width, model.heads * batch, model.queries * tokens
                sizes = {"h": heads, "q": queries, "d": width, "k": _KEYS, "e": width}
                yield Case(
                    f"{name} {phase} {batch}", "attention", sizes,
                    published=model.published, published_search=model.published_search,
                )  # fmt: skip
        for name, model in _ATTENTION.items():
            width, heads = model.width, model.heads * batch
            sizes = {"h": heads, "q": model.queries, "d": width, "k": _KEYS, "e": width}
            yield Case(
                f"{name} scaled {batch}", "scaled_attention", sizes, 8,
                model.published, model.published_search,
            )  # fmt: skip
        yield Case(f"MLP {batch}", "mlp", {"m": 16 * batch, "r": 16}, published="3x")
        adapter = {"m": 16 * batch, "r": 16}
        yield Case(f"MLP + residual {batch}", "residual_mlp", adapter, published="3x")
        yield Case(f"MoE {batch}", "moe", {"m": 8 * batch})
        yield Case(f"LoRA {batch}", "lora", {"m": 16 * batch}, published="2.3x")
    wrong = "190 of 190 saved graphs are wrong"
    yield Case("QKNorm", "qknorm", {}, 11, wrong, "")
    yield Case("RMSNorm + Linear", "rmsnorm_linear", published_search="")
    yield Case("gated MLP", "gated_mlp", published_search="15 to 126 s, 204,589 to 290,542 states")
    yield Case("gated MLP, down projection", "swiglu", published="none found", published_search="")
    yield Case("nTrans", "ntrans", published_search="")


#: The search of GQA by operators in a block, on an A100: with all means, without abstract expressions, and
#: without the canonical form (Table 5).
TABLE_5 = {
    4: ("9 s", "< 1 s", "< 1 s"),
    5: ("2.3 min", "249 min", "> 12 h"),
    6: ("20 min", "> 12 h", "> 12 h"),
    7: ("76 min", "> 12 h", "> 12 h"),
}
