-- The kernels that e-nodes are: key, μGraph, element type, and an e-node of each, the extracted graph's if it has one.
WITH used AS (
    SELECT y.attrs ->> 'mugraph' AS key, e.id, e.class, e.signature, x.enode IS NOT NULL AS is_chosen,
        list_filter([e.c0, e.c1, e.c2, e.c3, e.c4], lambda c: c > 0) AS children
    FROM symbol AS y
    JOIN signature AS s ON s.symbol = y.id
    JOIN enode AS e ON e.signature = s.id
    LEFT JOIN chosen AS x ON x.enode = e.id
    WHERE y.op = 'fused' AND NOT e.filtered
)
SELECT
    k.mugraph, k.graph, k.dtype, count(*) FILTER (u.is_chosen) AS chosen_uses, count(*) AS uses,
    first({'class': u.class, 'enode': u.id, 'signature': u.signature, 'children': u.children}
        ORDER BY u.is_chosen DESC, u.id) AS example
FROM fused_kernel AS k JOIN used AS u ON u.key = k.mugraph
GROUP BY k.mugraph, k.graph, k.dtype
ORDER BY chosen_uses DESC, uses DESC, k.mugraph
