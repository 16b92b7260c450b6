"""Replay: from the original graph to the extracted one, one application of one rule at a time.

From the outputs down, each node takes the form that was extracted, along edges of the proof graph. Before
an edge is walked, the operands that its rule looks at get the forms that it found there, by the same means.
Parts that the rule does not look at stay as they are. A node that several others use changes for all of
them, unless its form is fixed: then the user that needs another form gets a node of its own.

``Supply`` finds operands that an application needs and the graph does not show at its place. A rule of two
sources speaks, at one of them, of operands of the other; a law read backward may speak of operands that its
target does not have. Any form of theirs will do: one of the graph is taken, or else built.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from relational_tensat.base.errors import NoSolutionError
from relational_tensat.explain.laws import Congruence, Walk
from relational_tensat.explain.proof import ProofGraph
from relational_tensat.explain.rewrite import Match, ReplacedTerm, RewriteStep
from relational_tensat.explain.state import RewrittenNode, State, pinned
from relational_tensat.explain.terms import Terms


class Supply:
    """Finds or builds nodes of given classes.

    Args:
        chosen: the extracted e-node of each class that the result needs.
    """

    def __init__(self, graph: ProofGraph, state: State, chosen: Mapping[int, int]) -> None:
        self._graph = graph
        self._state = state
        self._form = _smallest(graph)
        self._form |= {owner: graph.first_form(enode) for owner, enode in chosen.items()}

    def bind_others(self, match: Match) -> None:
        """Bind the variables of a rule that nothing is known of yet."""
        missing = [n for n in range(match.law.variables) if n not in match.bound]
        if not missing:
            return
        match.local = False
        nodes = self._state.nodes()
        for new in (True, False):  # the other root may be there in its new form, or in its old one
            side, _ = match.new_side if new else match.old_side
            for output, root in enumerate(side.roots):
                if output in match.places or root < match.law.variables:
                    continue
                bindings = (match.fits(node, output, new=new) for node in nodes)
                match.bound.update(
                    next((binding for binding in bindings if binding is not None), {})
                )
        by_class = {self._graph.owner(node.form): node for node in nodes}
        by_class.update({self._graph.owner(node.form): node for node in nodes if node.final})
        for variable in missing:
            if variable not in match.bound:
                match.bound[variable] = self._node(match.edge.operands[variable], by_class)

    def keep_apart(self, match: Match) -> None:
        """Copy what operands have in common with the nodes that are about to change.

        A node that becomes a form of its own operand must leave a copy of itself as that operand.
        """
        if not match.local:
            changing = set(match.places.values())
            for variable in range(match.law.variables):
                match.bound[variable] = self._apart(match.bound[variable].now(), changing)

    def _apart(self, start: RewrittenNode, changing: set[RewrittenNode]) -> RewrittenNode:
        copies: dict[RewrittenNode, RewrittenNode] = {}
        for node in self._state.nodes([start]):
            operands = node.operands()
            moved = [copies.get(operand, operand) for operand in operands]
            if node in changing or moved != operands:
                copies[node] = RewrittenNode(node.form, moved)
        return copies.get(start, start)

    def _node(self, owner: int, by_class: Mapping[int, RewrittenNode]) -> RewrittenNode:
        """Return a node of a class: one of the graph, or a new one in the form that the result has."""
        node_of: dict[int, RewrittenNode] = dict(by_class)
        stack = [owner]
        while stack:
            current = stack[-1]
            children = self._graph.nodes[self._form[current]].children
            waiting = [child for child in children if child not in node_of]
            if current in node_of or not waiting:
                stack.pop()
                if current not in node_of:
                    node_of[current] = RewrittenNode(
                        self._form[current], [node_of[c] for c in children]
                    )
            else:
                stack.extend(waiting)
        return node_of[owner]


def _smallest(graph: ProofGraph) -> dict[int, int]:
    """Return, per class, a form such that following them ends: the first found from the leaves up."""
    waiting = {n.id: len(set(n.children)) for n in graph.nodes.values()}
    users: dict[int, list[int]] = {}
    for node in graph.nodes.values():
        for child in set(node.children):
            users.setdefault(child, []).append(node.id)
    form: dict[int, int] = {}
    ready = [n for n, count in waiting.items() if count == 0]
    while ready:
        following: list[int] = []
        for ready_form in ready:
            owner = graph.owner(ready_form)
            if owner in form:
                continue
            form[owner] = ready_form
            for user in users.get(owner, ()):
                waiting[user] -= 1
                if waiting[user] == 0:
                    following.append(user)
        ready = following
    return form


#: Reaching a form inside reaching a form, so many times: no sensible explanation goes that deep.
_DEEPEST = 60
#: Operands of operands that are made equal: without an end where a value has forms made of itself.
_DEEPEST_ALIKE = 250
#: Times that one edge leads on from one form, each time from another term: reshapes of reshapes, say.
_MOST_ATTEMPTS = 20
#: Edges that are walked, where those that fail are replaced by others.
_MOST_WALKS = 20_000


class _LimitError(NoSolutionError):
    """The search for an explanation has taken too long; no other way is tried."""


class Replay:
    """One replay.

    Args:
        chosen: the extracted e-node of each class that the result needs.
        step_limit: steps after which the search for an explanation stops.
    """

    def __init__(
        self,
        graph: ProofGraph,
        state: State,
        chosen: Mapping[int, int],
        terms: Terms,
        step_limit: int,
    ) -> None:
        self._graph = graph
        self._state = state
        self._chosen = chosen
        self._terms = terms
        self._step_limit = step_limit
        self._supply = Supply(graph, state, chosen)
        self._depth = self._alike_depth = self._n_walks = 0
        self._rewrites: list[RewriteStep] = []
        #: The terms of all nodes, after the last step.
        self._term_of = state.terms(terms)

    def run(self) -> list[RewriteStep]:
        """Return the steps, in order.

        Raises:
            NoSolutionError: no explanation was found, as far as ways were tried, or within the limits.
        """
        self._state.merge(self._term_of)
        while self._settle_next():
            pass
        return self._rewrites

    def _settle_next(self) -> bool:
        """Give one more node the form that was extracted, all its users having theirs; False at the end."""
        for node in reversed(self._state.nodes()):
            goal = self._chosen[self._graph.owner(node.form)]
            if self._graph.enode(node.form) == goal:
                node.final = True
            else:
                self._reach(node, self._graph.nearest_form(goal, node.form))
                node.now().final = True
                return True
        return False

    def _reach(self, node: RewrittenNode, goal: int) -> None:
        """Rewrite a node, which is not fixed, until it has the required form."""
        attempts: Counter[tuple[int, Walk]] = Counter()
        walked: set[tuple[int, Walk]] = set()
        banned: set[Walk] = set()
        with self._deeper():
            while node.form != goal:
                walk = self._graph.next_walk(node.form, goal, banned)
                if walk is None:
                    raise _no_explanation("no way from one e-node of a class to another")
                self._state.add_terms(self._term_of, self._terms, [node])
                term = self._term_of[node]
                attempts[node.form, walk] += 1
                in_circles = (term, walk) in walked or attempts[node.form, walk] > _MOST_ATTEMPTS
                if in_circles or not self._succeeds(node, walk):
                    banned.add(walk)
                walked.add((term, walk))
                # A node that is fixed and must change again is copied
                latest = node.now()
                if latest is not node and latest.fixed and latest.form != goal:
                    node.became = latest.copy()
                node = node.now()

    @contextmanager
    def _deeper(self) -> Iterator[None]:
        self._depth += 1
        try:
            if self._depth > _DEEPEST:
                raise _no_explanation("rewrites that need each other too deeply")
            yield
        finally:
            self._depth -= 1

    def _succeeds(self, node: RewrittenNode, walk: Walk) -> bool:
        """Walk an edge; return whether it could be walked, where another way may be tried."""
        self._n_walks += 1
        if self._n_walks > _MOST_WALKS:
            raise _LimitError(f"no explanation found: more than {_MOST_WALKS} unions were tried")
        try:
            with pinned([node]):
                self._walk(node, walk)
        except _LimitError:
            raise
        except NoSolutionError:
            return False
        return True

    def _require(self, parent: RewrittenNode, index: int, goal: int) -> RewrittenNode:
        """Return an operand, rewritten to the required form."""
        node = parent.child(index)
        if node.form != goal:
            if node.fixed:
                node = parent.children[index] = node.copy()
            self._reach(node, goal)
        return parent.child(index)

    def _walk(self, node: RewrittenNode, walk: Walk) -> None:
        """Walk an edge: make what its rule looks at, and replace the node."""
        edge, forward = walk
        if isinstance(edge, Congruence):  # operands take their forms when a rule looks at them
            node.form = edge.end if forward else edge.start
            return
        match = Match(edge, forward)
        match.places[match.edge.output] = node
        try:
            self._find(node, match, match.edge.output)
            self._find_partner(match)
            self._supply.bind_others(match)
            self._supply.keep_apart(match)
            self._replace(match)
        finally:
            match.release()
        self._state.merge(self._term_of)

    def _find(self, node: RewrittenNode, match: Match, output: int) -> None:
        """Make a node an instance of one root of the side that a rule looks at."""
        value = match.old_side[0].roots[output]
        match.bound[value] = node
        match.local &= value >= match.law.variables
        self._find_operands(node, match, value)

    def _find_operands(self, node: RewrittenNode, match: Match, value: int) -> None:
        side, forms = match.old_side
        for index, operand in enumerate(side.operands(value)):
            if operand in match.bound:
                self._make_alike(node, index, match.bound[operand])
            elif operand < side.variables:
                match.bound[operand] = node.child(index)
            else:
                child = self._require(node, index, forms[operand - side.variables])
                match.hold(child)
                match.bound[operand] = child
                self._find_operands(child, match, operand)

    def _make_alike(self, parent: RewrittenNode, index: int, model: RewrittenNode) -> None:
        """Make an operand the same as another node, which a rule requires to be equal."""
        model = model.now()
        node = parent.child(index)
        self._state.add_terms(self._term_of, self._terms, (node, model))
        if self._term_of[node] == self._term_of[model]:
            parent.children[index] = model
            return
        self._alike_depth += 1
        try:
            if self._alike_depth > _DEEPEST_ALIKE:
                raise _no_explanation("operands that are made of each other without end")
            with pinned(self._state.nodes([model])):
                node = self._require(parent, index, model.form)
                with pinned([node]):
                    for position in range(len(node.children)):
                        self._make_alike(node, position, model.child(position))
        finally:
            self._alike_depth -= 1
        parent.children[index] = model

    def _find_partner(self, match: Match) -> None:
        """Look for the other root of a rule of two sources, to replace both in one step."""
        ((place, node),) = match.places.items()
        for output in range(len(match.law.source.roots)):
            old, new = (match.edge.root(way, output) for way in (match.forward, not match.forward))
            if output == place or old is None or new is None:
                continue
            partner = self._partner(node, old, new)
            if partner is None:
                continue
            if partner.form != old:
                self._reach(partner, old)
                partner = partner.now()
            match.hold(partner)
            self._find(partner, match, output)
            match.places[output] = partner
            match.local = False

    def _partner(self, node: RewrittenNode, old: int, new: int) -> RewrittenNode | None:
        """Return a node, neither above nor below another one, that may be replaced together with it."""
        below = set(self._state.nodes([node]))
        wants_new = self._chosen.get(self._graph.owner(new)) == self._graph.enode(new)
        for candidate in self._state.nodes():
            fits = candidate.form == old or (
                wants_new and self._graph.owner(candidate.form) == self._graph.owner(new)
            )
            free = candidate.form != new and not candidate.fixed and candidate not in below
            if fits and free and node not in self._state.nodes([candidate]):
                return candidate
        return None

    def _replace(self, match: Match) -> None:
        """Apply the rule, and write down the step."""
        terms, outputs = self._term_of, self._state.outputs
        new = (*outputs, *match.places.values(), *match.bound.values())  # copies, as far as unknown
        self._state.add_terms(terms, self._terms, new)
        before = tuple([terms[node] for node in outputs])
        places = [(n, node, terms[node], *self._names_of(node)) for n, node in match.places.items()]
        bound = tuple([terms[match.bound[n].now()] for n in range(match.law.variables)])
        self._build(match)
        terms = self._term_of = self._state.terms(self._terms)
        after = tuple([terms[node] for node in self._state.outputs])
        if before == after:
            return
        replaced = tuple(
            ReplacedTerm(n, term, terms[node.now()], self._graph.owner(node.form), names, near)
            for n, node, term, names, near in sorted(places)
        )
        self._rewrites.append(RewriteStep(match.law, match.forward, bound, replaced, before, after))
        if len(self._rewrites) > self._step_limit:
            raise _LimitError(f"no explanation found: more than {self._step_limit} steps")

    def _names_of(self, node: RewrittenNode) -> tuple[tuple[str, ...], str]:
        """Return the original graph's names of a node; without one, that of the nearest user with one."""
        if node.names:
            return tuple(node.names), ""
        users: dict[RewrittenNode, list[RewrittenNode]] = {}
        for member in self._state.nodes():
            for operand in member.operands():
                users.setdefault(operand, []).append(member)
        ring, visited = [node], {node}
        while ring:
            names = [member.names[0] for member in ring if member.names]
            if names:
                return (), names[0]
            ring = list(
                dict.fromkeys(
                    u for member in ring for u in users.get(member, ()) if u not in visited
                )
            )
            visited.update(ring)
        return (), ""

    def _build(self, match: Match) -> None:
        """Put what a rule builds into the places of what it found."""
        side, forms = match.new_side
        places: dict[int, list[RewrittenNode]] = {}
        for output, node in match.places.items():
            places.setdefault(side.roots[output], []).append(node)
        values = {variable: match.bound[variable].now() for variable in range(side.variables)}
        terms = {variable: self._term_of[node] for variable, node in values.items()}
        new_values = side.operators(match.places)
        for value in new_values:
            signature, operands = side.nodes[value - side.variables]
            terms[value] = self._terms.id_of(signature, [terms[operand] for operand in operands])
        existing = self._usable(match, {terms[value] for value in new_values})
        for value in new_values:
            if terms[value] in existing:
                values[value] = existing[terms[value]]
            else:
                children = [values[operand] for operand in side.operands(value)]
                values[value] = node = places[value][0] if value in places else RewrittenNode(0, ())
                node.form, node.children = forms[value - side.variables], children
        for root, waiting in places.items():
            for node in waiting:
                if node is not values[root]:
                    node.become(values[root])

    def _usable(self, match: Match, new_terms: set[int]) -> dict[int, RewrittenNode]:
        """Return nodes of the graph, by term, that what is built may have in it.

        Not those that are replaced, nor what depends on them: nothing may come to depend on itself.
        Such nodes can only be equal to what is built if that has the replaced term in it.
        """
        avoided = set(match.places.values())
        if not match.local or not new_terms.isdisjoint(self._term_of[node] for node in avoided):
            avoided = self._state.above(avoided)
        return {t: n for n, t in self._term_of.items() if n.became is None and n not in avoided}


def _no_explanation(reason: str) -> NoSolutionError:
    return NoSolutionError(f"no explanation found: {reason}")
