-- A member that the subgraph was not grown from, and that no application of the subgraph built: one whose roots and
-- variables are classes that had members before it.
WITH
first_member AS (
    SELECT m.subgraph, e.class, min(m.place) AS place
    FROM subgraph_node AS m JOIN enode AS e ON e.id = m.enode
    GROUP BY m.subgraph, e.class
),
source AS (
    SELECT a.subgraph, a.id, a.place, unnest(a.roots || a.bindings[:r.leaves]) AS class
    FROM subgraph_application AS a JOIN rule AS r ON r.id = a.rule
),
without_source AS (
    SELECT source.subgraph, source.id
    FROM source
    JOIN eclass AS c ON c.id = source.class
    LEFT JOIN first_member AS f ON f.subgraph = source.subgraph AND f.class = c.parent
    WHERE f.place IS NULL OR f.place >= source.place
),
target AS (
    SELECT a.subgraph, a.id, unnest(a.bindings[r.leaves + 1:]) AS class
    FROM subgraph_application AS a JOIN rule AS r ON r.id = a.rule
),
built AS (
    SELECT target.subgraph, target.id, c.parent AS class FROM target JOIN eclass AS c ON c.id = target.class
)
SELECT m.subgraph, m.enode
FROM subgraph_node AS m JOIN enode AS e ON e.id = m.enode
LEFT JOIN built AS b ON b.subgraph = m.subgraph AND b.id = m.application AND b.class = e.class
LEFT JOIN without_source AS w ON w.subgraph = m.subgraph AND w.id = m.application
WHERE m.application > 0 AND (b.id IS NULL OR w.id IS NOT NULL)
