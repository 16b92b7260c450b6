-- Views
-- The e-graph as people and queries like it best.

CREATE VIEW union_find AS SELECT id, parent FROM eclass;
COMMENT ON VIEW union_find IS 'The union-find alone.';
COMMENT ON COLUMN union_find.id IS 'Class, by its first id; as eclass.id.';
COMMENT ON COLUMN union_find.parent IS 'The canonical class that it is by now; as eclass.parent.';

CREATE VIEW kept_edge AS
SELECT * FROM (
    SELECT id AS enode, signature, class, unnest([c0, c1, c2, c3, c4]) AS child FROM enode WHERE NOT filtered
)
WHERE child > 0;
COMMENT ON VIEW kept_edge IS
'Edges of the e-graph that the cycle filter kept: a row for each operand of each e-node that is not filtered.';
COMMENT ON COLUMN kept_edge.enode IS 'Joins enode.id.';
COMMENT ON COLUMN kept_edge.signature IS 'Signature of the e-node; joins signature.id.';
COMMENT ON COLUMN kept_edge.class IS 'E-class of the e-node; joins eclass.id.';
COMMENT ON COLUMN kept_edge.child IS 'E-class of the operand; joins eclass.id.';

CREATE VIEW computed_operands AS
SELECT
    e.id AS enode, e.signature, e.class,
    s.prepared & (
        coalesce(NOT k0.weight_only, false)::INTEGER + 2 * coalesce(NOT k1.weight_only, false)::INTEGER
        + 4 * coalesce(NOT k2.weight_only, false)::INTEGER + 8 * coalesce(NOT k3.weight_only, false)::INTEGER
        + 16 * coalesce(NOT k4.weight_only, false)::INTEGER
    ) AS computed
FROM enode AS e
JOIN signature AS s ON s.id = e.signature
LEFT JOIN eclass AS k0 ON k0.id = e.c0
LEFT JOIN eclass AS k1 ON k1.id = e.c1
LEFT JOIN eclass AS k2 ON k2.id = e.c2
LEFT JOIN eclass AS k3 ON k3.id = e.c3
LEFT JOIN eclass AS k4 ON k4.id = e.c4
WHERE s.prepared > 0 AND NOT e.filtered AND computed > 0;
COMMENT ON VIEW computed_operands IS
'E-nodes with operands that are computed at inference although kernels would arrange them before.';
COMMENT ON COLUMN computed_operands.enode IS 'Joins enode.id.';
COMMENT ON COLUMN computed_operands.signature IS 'Signature of the e-node; joins signature.id.';
COMMENT ON COLUMN computed_operands.class IS 'E-class of the e-node; joins eclass.id.';
COMMENT ON COLUMN computed_operands.computed IS 'Those operands: bit i, from 0 on, is set for operand i.';

CREATE VIEW enode_text AS
SELECT
    e.id, e.class, y.op, y.attrs, t.type,
    list_filter([e.c0, e.c1, e.c2, e.c3, e.c4], lambda c: c > 0) AS children,
    e.iteration, coalesce(r.name, 'original') AS rule, e.filtered
FROM enode AS e
JOIN signature AS s ON s.id = e.signature
JOIN symbol AS y ON y.id = s.symbol
JOIN value_type AS t ON t.id = s.type
LEFT JOIN rule AS r ON r.id = e.rule;
COMMENT ON VIEW enode_text IS 'The e-nodes spelled out, for people: the place to begin.';
COMMENT ON COLUMN enode_text.id IS 'As enode.id.';
COMMENT ON COLUMN enode_text.class IS 'E-class of the e-node, canonical; joins eclass.id.';
COMMENT ON COLUMN enode_text.op IS 'Operator.';
COMMENT ON COLUMN enode_text.attrs IS 'Attributes, as a JSON object.';
COMMENT ON COLUMN enode_text.type IS 'Type of the result, e.g. float32[64,1024].';
COMMENT ON COLUMN enode_text.children IS 'E-classes of the operands, canonical; each joins eclass.id.';
COMMENT ON COLUMN enode_text.iteration IS 'Iteration that made it; 0: the original graph.';
COMMENT ON COLUMN enode_text.rule IS 'Name of the rule that made it, or original.';
COMMENT ON COLUMN enode_text.filtered IS 'Whether the cycle filter took it out.';
