"""Between the tables and the arrays: the extraction problem of an e-graph, and the graph of a choice.

The costs of new e-nodes are asked for once, in one batch, and joined back: the table ``cost``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from relational_tensat.cost.analytic import as_source
from relational_tensat.cost.device import Configuration
from relational_tensat.cost.key import configuration_of
from relational_tensat.cost.source import AT_LEAST, UNMEASURED, CostAnswer, CostModel, CostSource
from relational_tensat.egraph.catalogue import Symbol
from relational_tensat.egraph.chosen_graph import ChosenNode, build_with_classes
from relational_tensat.egraph.egraph import EGraph, classes_of_weights
from relational_tensat.egraph.enode_rows import CHILD_COLUMNS
from relational_tensat.extract.problem import UNUSED, ExtractionProblem, topological_order
from relational_tensat.tensor.graph import Graph

#: Brings an image out of blocks of channels: its operand is the same value. So names of the model's values
#: stay where all around is in blocks.
_OUT_OF_BLOCKS = Symbol("ort_from_blocks", (("channels_last", False),), 1)


#: The family of what the original graph has.
ORIGINAL = -1


@dataclass(frozen=True, eq=False)
class TableProblem:
    """An extraction problem and the ids of its e-nodes in the tables.

    Attributes:
        enodes: per e-node of the problem, its id.
    """

    problem: ExtractionProblem
    enodes: NDArray[np.int32]


def extraction_problem(
    egraph: EGraph, cost: CostModel, asking: Asking = CostSource.ask
) -> TableProblem:
    """Fill the cost table for new signatures and return the e-graph's extraction problem.

    Args:
        asking: how costs are asked for; unless with ``CostSource.ask``, not all of them are measured.
    """
    weights = classes_of_weights(egraph)
    egraph.database.run("extract/mark_weight_only", classes=weights.tolist())
    fill_costs(egraph, cost, asking)
    _fill_computed_costs(egraph, cost, asking)
    rows = egraph.database.columns("extract/extraction_nodes")
    table = problem_of_rows(rows, egraph.find(egraph.root))
    problem, iteration = table.problem, rows["iteration"]
    original = _original(iteration, problem.node_class)
    ((kept,),) = egraph.database.run("extract/kept_originals")
    if np.count_nonzero(iteration == 0) < kept:
        _settle_constants(original, np.flatnonzero(rows["weight_only"]), problem)
    if not egraph.is_universe or _is_derived(original, problem):
        table = replace(table, problem=replace(problem, original=original))
    return table


def problem_of_rows(rows: Mapping[str, NDArray[Any]], root: int) -> TableProblem:
    """Return the extraction problem of rows of ``extract/extraction_nodes``, without an original graph.

    Args:
        root: the class that is needed, canonical.
    """
    classes, places = np.unique(rows["class"], return_inverse=True)
    children = np.stack([rows[f"c{i}"] for i in range(CHILD_COLUMNS)], axis=1)
    pointer, flat = _child_lists(children)
    problem = ExtractionProblem(
        cost_us=rows["cost_us"].astype(np.float64),
        node_class=places.astype(np.int32),
        child_ptr=pointer,
        child_idx=np.searchsorted(classes, flat).astype(np.int32),
        n_classes=len(classes),
        root=int(np.searchsorted(classes, root)),
        original=np.full(len(classes), UNUSED, np.int32),
    )
    return TableProblem(problem, rows["id"].astype(np.int32))


def choose(egraph: EGraph, table: TableProblem, choice: NDArray[np.int32]) -> None:
    """Write a choice into the table ``chosen``."""
    nodes = choice[choice != UNUSED]
    egraph.database.execute("DELETE FROM chosen")
    ids = [int(i) for i in table.enodes[nodes]]
    egraph.database.execute(
        "INSERT INTO chosen SELECT class, id FROM enode WHERE id IN (SELECT unnest($ids))",
        {"ids": ids},
    )


def chosen_graph(egraph: EGraph) -> Graph:
    """Return the graph that the table ``chosen`` describes.

    Values keep the names they had in the original graph wherever they are still computed; weights are
    referred to by their names and nothing is folded.
    """
    return chosen_with_classes(egraph)[0]


def chosen_with_classes(egraph: EGraph) -> tuple[Graph, dict[str, int]]:
    """Return the graph that the table ``chosen`` describes, and the e-class of each value by its name."""
    database, catalogue = egraph.database, egraph.catalogue
    nodes = {
        int(class_id): ChosenNode(
            enode,
            catalogue.symbol_of(signature),
            catalogue.type_of(signature),
            tuple(child for child in children if child),
        )
        for class_id, enode, signature, children in database.run("extract/chosen_nodes")
    }
    names = list(database.run("egraph/value_names"))
    out_of_blocks = catalogue.by_signature(lambda symbol: symbol == _OUT_OF_BLOCKS)
    if signatures := [number for number, is_one in enumerate(out_of_blocks, start=1) if is_one]:
        names += database.run("extract/names_in_blocks", signatures=signatures)
    return build_with_classes(egraph.graph, nodes, names, database.run("egraph/output_classes"))


def chosen_choice(egraph: EGraph, table: TableProblem) -> NDArray[np.int32] | None:
    """Return what the table ``chosen`` has as a choice; None if an e-node of it is not in the problem."""
    return choice_of(table, [row[0] for row in egraph.database.run("extract/chosen_ids")])


def choice_of(table: TableProblem, enodes: Sequence[int]) -> NDArray[np.int32] | None:
    """Return e-nodes by their ids, one a class, as a choice; None if one of them is not in the problem."""
    ids = np.array(enodes, np.int32)
    nodes = np.searchsorted(table.enodes, ids)
    if not np.array_equal(table.enodes[np.minimum(nodes, len(table.enodes) - 1)], ids):
        return None
    choice = np.full(table.problem.n_classes, UNUSED, np.int32)
    choice[table.problem.node_class[nodes]] = nodes
    return choice


def enodes_in_order(table: TableProblem, choice: NDArray[np.int32]) -> tuple[int, ...]:
    """Return the ids of the e-nodes that the root needs of a choice, children first."""
    order = topological_order(table.problem, choice)
    return tuple(table.enodes[choice[order]].tolist())


def families_of(
    egraph: EGraph, table: TableProblem, never: Collection[str] = ()
) -> tuple[NDArray[np.int32], list[str]]:
    """Return the family of rules that made each e-node, a number or ``ORIGINAL``; and the families.

    Args:
        never: rules, without their cases, whose e-nodes are as the original's.
    """
    made_by = {
        int(enode): str(rule) for enode, rule in egraph.database.run("extract/rules_of_enodes")
    }
    names = sorted({name for name in made_by.values() if name and name not in never})
    numbers = {name: number for number, name in enumerate(names)}
    made = [numbers.get(made_by[int(enode)], ORIGINAL) for enode in table.enodes]
    return np.array(made, np.int32), names


def rules_of_chosen(egraph: EGraph) -> dict[str, int]:
    """Return the rules that made the chosen e-nodes, and how many each made."""
    return {str(name): int(count) for name, count in egraph.database.run("extract/rules_of_chosen")}


def _child_lists(children: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return (pointer, flat list) of the distinct non-zero children of each row."""
    ordered = np.sort(children, axis=1)
    keep = ordered > 0
    keep[:, 1:] &= ordered[:, 1:] != ordered[:, :-1]
    pointer = np.zeros(len(children) + 1, dtype=np.int32)
    np.cumsum(keep.sum(axis=1), out=pointer[1:])
    return pointer, ordered[keep]


def _original(iteration: NDArray[np.int32], node_class: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return, per class, its oldest e-node of the original graph.

    Children are older than their parents there, so the oldest e-nodes form no cycle whatever was merged.
    """
    original = np.full(node_class.max() + 1, UNUSED, dtype=np.int32)
    for node in np.flatnonzero(iteration == 0)[::-1]:
        original[node_class[node]] = node
    return original


def _is_derived(original: NDArray[np.int32], problem: ExtractionProblem) -> bool:
    """Whether all classes that the root needs have an e-node of the original: not in every subgraph."""
    needed: set[int] = set()
    stack = [problem.root]
    while stack:
        owner = stack.pop()
        if owner in needed:
            continue
        needed.add(owner)
        node = original[owner]
        if node == UNUSED:
            return False
        stack += problem.children(node).tolist()
    return True


def _settle_constants(
    original: NDArray[np.int32], nodes: NDArray[np.intp], problem: ExtractionProblem
) -> None:
    """Give each weight-only class an e-node over weights only, from the leaves up, oldest first.

    Rules may find that what the original graph computes from its inputs is a constant: its own
    e-nodes for such a class are not in the problem.

    Args:
        original: changed in place.
        nodes: the e-nodes of weight-only classes; every such class can be derived from them.
    """
    derived: set[int] = set()
    waiting = nodes.tolist()
    while waiting:
        blocked = []
        for node in waiting:
            owner = int(problem.node_class[node])
            if owner in derived:
                continue
            if derived.issuperset(problem.children(node).tolist()):
                derived.add(owner)
                original[owner] = node
            else:
                blocked.append(node)
        waiting = blocked


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


def _fill_computed_costs(egraph: EGraph, cost: CostModel, asking: Asking = CostSource.ask) -> None:
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
