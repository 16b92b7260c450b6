"""The e-nodes of a universe as arrays, by id: for questions of many subgraphs at a time.

E-nodes are found by what they are, since equal ones are one.

Masks say which of some subgraphs has which e-node, a bit each.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

import numpy as np
from numpy.typing import NDArray

from relational_tensat.base.errors import RelationalTensatError
from relational_tensat.egraph.database import Database
from relational_tensat.egraph.enode_rows import CHILD_COLUMNS, hashed
from relational_tensat.explore.compile.compiled_rules import skeleton_walk
from relational_tensat.explore.compile.patterns import Pattern

Ints = NDArray[np.int32]
Places = NDArray[np.intp]


class NodeArrays:
    """The e-nodes as they are in the tables; ids start at 1, so that 0 stands for none.

    Attributes:
        owner: by id, the class, canonical.
        signature: by id.
        children: by id, the child classes, canonical; 0 for none.
        exists: by id, whether it is an e-node of the universe: of equal ones, one stays.
        became: by id, the e-node that it is by now.
        parent: by class, its present class.
        gone: the e-nodes that were equal to others at the last reading.
        moved: the classes that were part of others then.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self.owner: Ints = np.zeros(1, np.int32)
        self.signature: Ints = np.zeros(1, np.int32)
        self.children: Ints = np.zeros((1, CHILD_COLUMNS), np.int32)
        self.exists = np.zeros(1, np.bool_)
        self.became: Ints = np.zeros(1, np.int32)
        self.parent: Ints = np.zeros(1, np.int32)
        self.gone: Ints = np.zeros(0, np.int32)
        self.moved: Ints = np.zeros(0, np.int32)
        self._hashes = np.zeros(0, np.uint64)
        self._by_hash: Ints = np.zeros(0, np.int32)
        self.refresh()

    @property
    def size(self) -> int:
        """One more than the highest id."""
        return len(self.owner)

    def refresh(self) -> None:
        """Read the tables again."""
        rows = self._database.columns("subgraphs/nodes")
        parents = self._database.columns("subgraphs/parents")["parent"]
        size = max(int(rows["id"].max(initial=0)) + 1, self.size)
        ids = rows["id"]
        longer = np.zeros(size, np.int32)
        longer[: len(self.became)] = self.became
        before, existed, became = self, self.exists, longer
        old_signature, old_children = before.signature, before.children
        old_parent = self.parent
        self.exists = np.zeros(size, np.bool_)
        self.exists[ids] = True
        self.owner = np.zeros(size, np.int32)
        self.owner[ids] = rows["class"]
        self.signature = np.zeros(size, np.int32)
        self.signature[ids] = rows["signature"]
        self.children = np.zeros((size, CHILD_COLUMNS), np.int32)
        for column in range(CHILD_COLUMNS):
            self.children[ids, column] = rows[f"c{column}"]
        self.parent = np.concatenate([np.zeros(1, np.int32), parents.astype(np.int32)])
        is_moved = self.parent[: len(old_parent)] != old_parent
        self.moved = np.flatnonzero(is_moved).astype(np.int32)
        self._index(ids)
        gone = np.flatnonzero(existed & ~self.exists[: len(existed)])
        became[ids] = ids
        if len(gone):
            became[gone] = self.find(old_signature[gone], self.parent[old_children[gone]])
            became = became[became]
        self.became = became
        self.gone = gone.astype(np.int32)

    def find(self, signatures: Ints, children: Ints) -> Ints:
        """Return the e-nodes of some signatures and child classes (canonical); 0 for absent ones."""
        hashes = hashed(signatures, children)
        place = np.searchsorted(self._hashes, hashes)
        place[place == len(self._hashes)] = 0
        found = np.where(self._hashes[place] == hashes, self._by_hash[place], 0).astype(np.int32)
        is_it = (self.signature[found] == signatures) & (self.children[found] == children).all(1)
        return np.where(is_it, found, 0).astype(np.int32)

    def _index(self, ids: Ints) -> None:
        hashes = hashed(self.signature[ids], self.children[ids])
        order = np.argsort(hashes)
        self._hashes, self._by_hash = hashes[order], ids[order].astype(np.int32)
        if len(hashes) > 1 and (self._hashes[1:] == self._hashes[:-1]).any():
            raise RelationalTensatError("two e-nodes of a universe are equal, or have one hash")

    def with_gone(self, rows: Ints) -> Places:
        """Return which rows of e-nodes have one that is gone since the last reading."""
        return _with_any(rows, self.gone, self.size)

    def with_moved(self, rows: Ints) -> Places:
        """Return which rows of classes have one that is part of another since the last reading."""
        return _with_any(rows, self.moved, len(self.parent))


class SourceFinder:
    """Finds the e-nodes of the matches of one pattern.

    Attributes:
        nodes: how many a match has.
        leaves: how many variables, each occurrence counted.
    """

    def __init__(self, pattern: Pattern) -> None:
        walk, columns = skeleton_walk(pattern.skeleton)
        self.nodes = len(walk)
        self.leaves = len(columns)
        self._above = walk
        #: Node and operand of each leaf: (1, 0) of ``n1.c0``.
        self._leaf_places = [
            (int(node[1:]), int(operand[1:]))
            for node, operand in (column.split(".") for column in columns)
        ]

    def find(self, arrays: NodeArrays, signatures: Ints, leaves: Ints) -> Ints:
        """Return the e-nodes of matches in pre-order, a row each; 0 where one is not there any more.

        Args:
            signatures: of the nodes, a row for each match.
            leaves: the canonical classes at the leaves, a row for each match.
        """
        count = len(signatures)
        children = np.zeros((self.nodes, count, CHILD_COLUMNS), np.int32)
        for leaf, (node, operand) in enumerate(self._leaf_places):
            children[node, :, operand] = leaves[:, leaf]
        found = np.zeros((count, self.nodes), np.int32)
        for node in range(self.nodes - 1, -1, -1):
            found[:, node] = arrays.find(signatures[:, node], children[node])
            above, operand = self._above[node]
            if above >= 0:
                children[above, :, operand] = arrays.owner[found[:, node]]
        found[(found == 0).any(1)] = 0
        return found


def _with_any(rows: Ints, ids: Ints, size: int) -> Places:
    """Return which rows have any of some ids, all below ``size``."""
    if not len(ids):
        return np.zeros(0, np.intp)
    is_one = np.zeros(size, np.bool_)
    is_one[ids] = True
    has_any = is_one[rows[:, 0]]
    for column in range(1, rows.shape[1]):
        has_any |= is_one[rows[:, column]]
    return np.flatnonzero(has_any)


Bits = NDArray[np.uint64]
Flags = NDArray[np.bool_]

#: Subgraphs in a word of a mask.
WORD = 64


def unpacked(bits: Bits, subgraphs: int) -> Flags:
    """Return masks as flags: a row each, a column for each subgraph."""
    flags = np.unpackbits(bits.view(np.uint8), axis=1, bitorder="little", count=subgraphs)
    return flags.view(np.bool_)


def some_subgraph(bits: Bits) -> Flags:
    """Return, for each mask, whether any subgraph is in it (word by word: rows are short)."""
    words = np.zeros(len(bits), np.uint64)
    for word in range(bits.shape[1]):
        words |= bits[:, word]
    return np.asarray(words != 0)


def packed(flags: NDArray[np.bool_ | np.uint8]) -> Bits:
    """Return rows of flags as masks."""
    words = -(-flags.shape[1] // WORD)
    wide = np.zeros((len(flags), WORD * words), np.uint8)
    wide[:, : flags.shape[1]] = flags
    bits: Bits = np.packbits(wide, axis=1, bitorder="little").view(np.uint64)
    return bits


class Masks:
    """The e-nodes of subgraphs side by side.

    Row 0 stands for no e-node, and every subgraph has it: lists of e-nodes are filled up with zeros.

    Attributes:
        subgraphs: how many there are.
        bits: a mask for each e-node, by id.
    """

    def __init__(self, members: Sequence[Ints], size: int) -> None:
        """Begin with the e-nodes of each subgraph.

        Args:
            members: by subgraph.
            size: one more than the highest id of an e-node.
        """
        self.subgraphs = len(members)
        flags = np.zeros((size, self.subgraphs), np.bool_)
        for subgraph, enodes in enumerate(members):
            flags[enodes, subgraph] = True
        self.bits: Bits = packed(flags)
        self.bits[0] = ~np.uint64(0)

    def only(self, subgraphs: Flags) -> Masks:
        """Return the masks of some subgraphs: the others have nothing."""
        some = copy(self)
        some.bits = self.bits & packed(subgraphs[None, :])
        return some

    def follow(self, became: Ints) -> None:
        """Grow with the universe, and let e-nodes that stand for equal ones be where any of these was.

        Args:
            became: by id, the e-node that it is by now.
        """
        old = len(self.bits)
        bits = np.zeros((len(became), self.bits.shape[1]), np.uint64)
        bits[:old] = self.bits
        gone = np.flatnonzero((became[:old] != np.arange(old)) & some_subgraph(self.bits[:old]))
        for enode in gone.tolist():
            bits[became[enode]] |= bits[enode]
        bits[gone] = 0
        bits[0] = ~np.uint64(0)
        self.bits = bits

    def have_all(self, enodes: Ints) -> Bits:
        """Return, for each row of e-nodes (0 fills it up), the mask of the subgraphs that have all."""
        mask: Bits = self.bits.take(enodes[:, 0], axis=0)
        for column in range(1, enodes.shape[1]):
            others = enodes[:, column]
            if others.any():
                mask &= self.bits.take(others, axis=0)
        return mask

    def enter(self, enodes: Ints, subgraph: int) -> None:
        """Let e-nodes come into a subgraph: several times the same one, or 0."""
        word, bit = divmod(subgraph, WORD)
        self.bits[enodes.ravel(), word] |= np.uint64(1 << bit)

    def sizes(self) -> Ints:
        """Return how many e-nodes each subgraph has."""
        rows = self.bits[1:]
        sizes: Ints = unpacked(rows[some_subgraph(rows)], self.subgraphs).sum(
            axis=0, dtype=np.int32
        )
        return sizes

    def membership(self, subgraphs: NDArray[np.intp]) -> Flags:
        """Return whether some subgraphs have e-nodes: a row for each subgraph, by id; 0 is in each."""
        flags = unpacked(self.bits, self.subgraphs)
        flags[0] = True
        return np.ascontiguousarray(flags[:, subgraphs].T)

    def members(self, subgraph: int) -> Ints:
        """Return the e-nodes of a subgraph, in the order of their ids."""
        word, bit = divmod(subgraph, WORD)
        column = (self.bits[1:, word] >> np.uint64(bit)) & np.uint64(1)
        return (np.flatnonzero(column) + 1).astype(np.int32)
