-- The e-graph
-- Ids start at 1. Child columns and `enode.class` are canonical after every iteration; other columns that name
-- classes have them by the ids of that time, and `eclass.parent` gives the canonical class.

CREATE TABLE enode (
    id INTEGER NOT NULL,
    class INTEGER NOT NULL,
    signature INTEGER NOT NULL,
    head INTEGER NOT NULL,
    c0 INTEGER NOT NULL, c1 INTEGER NOT NULL, c2 INTEGER NOT NULL, c3 INTEGER NOT NULL, c4 INTEGER NOT NULL,
    iteration INTEGER NOT NULL,
    rule INTEGER NOT NULL,
    stamp INTEGER NOT NULL,
    filtered BOOLEAN NOT NULL
);
COMMENT ON TABLE enode IS
'The e-nodes: an operator applied to e-classes. Of e-nodes that become equal one stays, so ids have gaps.';
COMMENT ON COLUMN enode.id IS 'Key. The class that an e-node is made in has the same id.';
COMMENT ON COLUMN enode.class IS 'E-class of the e-node, canonical; joins eclass.id.';
COMMENT ON COLUMN enode.signature IS 'Operator, attributes and types; joins signature.id.';
COMMENT ON COLUMN enode.head IS 'The head of its signature, kept here for matching; joins head.id, 0: none.';
COMMENT ON COLUMN enode.c0 IS 'First operand: an e-class, canonical; joins eclass.id, 0: there is none.';
COMMENT ON COLUMN enode.c1 IS 'Second operand, as c0.';
COMMENT ON COLUMN enode.c2 IS 'Third operand, as c0.';
COMMENT ON COLUMN enode.c3 IS 'Fourth operand, as c0.';
COMMENT ON COLUMN enode.c4 IS 'Fifth operand, as c0; of longer operand lists, a noop of the rest.';
COMMENT ON COLUMN enode.iteration IS 'Iteration of the exploration that made it; 0: the original graph.';
COMMENT ON COLUMN enode.rule IS 'Rule that made it; joins rule.id, 0: the original graph.';
COMMENT ON COLUMN enode.stamp IS
'Clock when the row was last written: semi-naive matching asks only for matches with an e-node as new. The clock advances by one after every search.';
COMMENT ON COLUMN enode.filtered IS
'Whether the cycle filter took it out: it is neither matched nor extracted. What is left has no cycle.';

CREATE TABLE eclass (
    id INTEGER NOT NULL, parent INTEGER NOT NULL, type INTEGER NOT NULL, height INTEGER NOT NULL,
    weight_only BOOLEAN NOT NULL
);
COMMENT ON TABLE eclass IS
'The e-classes, with the union-find: a row for every class that ever was. Canonical are those where parent = id.';
COMMENT ON COLUMN eclass.id IS 'Key, from 1 on without gaps.';
COMMENT ON COLUMN eclass.parent IS 'The canonical class that it is by now (in one step); joins eclass.id.';
COMMENT ON COLUMN eclass.type IS 'Type of its value; joins value_type.id.';
COMMENT ON COLUMN eclass.height IS
'A label above the heights of all children of all kept e-nodes of the class (an order, not a length): the cycle filter''s.';
COMMENT ON COLUMN eclass.weight_only IS
'Whether an e-node of it depends on weights and constants only, so that it costs nothing at inference; set by extraction.';
