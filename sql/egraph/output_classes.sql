-- The graph's outputs with their canonical classes, in order.
SELECT o.name, c.parent FROM graph_output AS o JOIN eclass AS c ON c.id = o.class ORDER BY o.position
