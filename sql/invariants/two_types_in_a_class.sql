-- Classes whose e-nodes (or whose merged classes) differ in shape or element type.
SELECT e.class, list(DISTINCT t.type ORDER BY t.type) AS types
FROM enode AS e JOIN signature AS s ON s.id = e.signature JOIN value_type AS t ON t.id = s.type
GROUP BY e.class HAVING count(DISTINCT s.type) > 1
UNION ALL
SELECT parent.id, list(DISTINCT t.type ORDER BY t.type)
FROM eclass JOIN eclass AS parent ON parent.id = eclass.parent JOIN value_type AS t ON t.id = eclass.type
GROUP BY parent.id HAVING count(DISTINCT eclass.type) > 1
