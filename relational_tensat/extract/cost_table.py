"""The table ``cost``: the costs of new e-nodes of an e-graph are asked for once, in one batch, and joined
back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from relational_tensat.cost.analytic import as_source
from relational_tensat.cost.device import Configuration
from relational_tensat.cost.key import configuration_of
from relational_tensat.cost.source import AT_LEAST, UNMEASURED, CostAnswer, CostModel, CostSource
from relational_tensat.egraph.egraph import EGraph

#: How a source is asked: ``CostSource.ask``, ``at_least`` or ``about``.
Asking: TypeAlias = Callable[
    [CostSource, Iterable[Configuration]], Mapping[Configuration, CostAnswer]
]


def fill_costs(egraph: EGraph, cost: CostModel, asking: Asking = CostSource.ask) -> None:
    """Give every signature a cost; rows that are there hold, no matter which code put them there.

    Stand-ins for costs that nobody has measured are replaced.

    The table ``meta`` says which source filled in last; see ``forget_costs``. Classes must be marked
    weight-only already: e-nodes that no result depends on are not asked for, but estimated, since measuring
    takes time.
    """
    source = as_source(cost)
    provisional = f"{source.name}: estimated, not asked for"
    egraph.database.run("cost/note_source", source=source.name)
    if source.is_lazy:
        labels = [source.label(origin) for origin in UNMEASURED]
        egraph.database.run("cost/drop_unmeasured", labels=labels)
        egraph.database.run("cost/drop_unmeasured_computed", labels=labels)
    rows = egraph.database.run("cost/uncosted", provisional=provisional)
    if rows:
        costs = _constant_costs(egraph, source, rows, provisional, asking)
        egraph.database.run(
            "cost/drop_provisional", provisional=provisional, signatures=costs["signature"]
        )
        egraph.database.insert("cost", costs)


def ask_for_chosen(
    egraph: EGraph, cost: CostModel, enodes: Sequence[int], origin: str = AT_LEAST
) -> bool:
    """Ask for what chosen e-nodes cost, where something of that origin stands for it.

    Returns:
        Whether there was any; the tables have it when costs are filled in again.
    """
    source = as_source(cost)
    if not source.is_lazy:
        return False
    rows = egraph.database.run(
        "cost/chosen_unmeasured", ids=list(enodes), label=source.label(origin)
    )
    source.ask(
        _configuration(egraph, int(signature), int(computed)) for signature, computed in rows
    )
    return bool(rows)


def signature_costs(egraph: EGraph, cost: CostModel, signatures: Sequence[int]) -> list[float]:
    """Return what signatures cost in µs: as the table has them, else as the source answers."""
    known = dict(egraph.database.run("cost/of_signatures", signatures=list(signatures)))
    asked = {s: _configuration(egraph, s) for s in signatures if s not in known}
    answers = as_source(cost).ask(asked.values())
    known.update({s: answers[configuration].cost_us for s, configuration in asked.items()})
    return [float(known[signature]) for signature in signatures]


def forget_costs(egraph: EGraph) -> None:
    """Drop the costs that the last source filled in; rows of one's own stay."""
    egraph.database.run("cost/forget_source")
    egraph.database.run("cost/forget_computed")


def _constant_costs(
    egraph: EGraph,
    source: CostSource,
    rows: Sequence[tuple[int, bool]],
    provisional: str,
    asking: Asking,
) -> dict[str, list[Any]]:
    """Return rows of ``cost``: of signatures whose operands are constants as they usually are.

    Args:
        rows: signatures, and whether a result depends on them.
    """
    configurations = {
        int(signature): _configuration(egraph, int(signature)) for signature, _ in rows
    }
    matter = {
        int(signature)
        for signature, matters in rows
        if matters or source.is_instant or source.is_free(configurations[int(signature)])
    }
    answers = asking(
        source, [configurations[signature] for signature in configurations if signature in matter]
    )
    costs, labels = [], []
    for signature, configuration in configurations.items():
        if signature in matter:
            costs.append(answers[configuration].cost_us)
            labels.append(source.label(answers[configuration].origin))
        else:
            costs.append(source.peek_us(configuration))
            labels.append(provisional)
    return {"signature": [*configurations], "cost_us": costs, "source": labels}


def fill_computed_costs(egraph: EGraph, cost: CostModel, asking: Asking = CostSource.ask) -> None:
    """Give signatures what they cost where operands are computed that usually are constants.

    ``fill_costs`` comes before; where the source does not tell the one from the other, that is all.
    """
    source = as_source(cost)
    if not source.tells_computed:
        return
    rows = egraph.database.run("cost/uncosted_computed", source=source.name)
    asked = [_configuration(egraph, int(signature), int(computed)) for signature, computed in rows]
    known = asking(source, asked)
    answers = [known[configuration] for configuration in asked]
    egraph.database.insert(
        "computed_cost",
        {
            "signature": [signature for signature, _ in rows],
            "computed": [computed for _, computed in rows],
            "cost_us": [answer.cost_us for answer in answers],
            "source": [source.label(answer.origin) for answer in answers],
        },
    )


def _configuration(egraph: EGraph, signature: int, computed: int = 0) -> Configuration:
    """Return the configuration of a signature; ``computed`` has a bit for each operand."""
    catalogue = egraph.catalogue
    symbol = catalogue.symbol_of(signature)
    operands = catalogue.operand_types(signature)
    return configuration_of(
        symbol.op,
        operands,
        catalogue.type_of(signature),
        dict(symbol.attrs),
        [n for n in range(len(operands)) if computed >> n & 1],
    )
