-- The rules that made the chosen e-nodes, and how many each.
SELECT r.name, count(*)
FROM chosen JOIN enode AS e ON e.id = chosen.enode JOIN rule AS r ON r.id = e.rule
GROUP BY r.name ORDER BY count(*) DESC, r.name
