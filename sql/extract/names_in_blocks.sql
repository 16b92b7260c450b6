-- Names of original values by chosen classes that hold the same in blocks, where the value itself is not chosen.
SELECT e.c0 AS class, v.name, 0 AS enode, '' AS node_name
FROM enode AS e JOIN eclass AS c ON c.parent = e.class JOIN original_value AS v ON v.enode = c.id
WHERE e.signature IN (SELECT unnest($signatures))
    AND e.c0 IN (SELECT class FROM chosen) AND e.class NOT IN (SELECT class FROM chosen)
QUALIFY row_number() OVER (PARTITION BY v.name ORDER BY e.id) = 1
ORDER BY e.id, v.name
