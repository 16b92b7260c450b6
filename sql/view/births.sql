-- The applications that made the e-nodes of some classes: the classes that each matched and bound, as they are now.
WITH made AS (
    SELECT id, iteration, rule FROM enode
    WHERE rule > 0 AND class IN (SELECT unnest($classes::INTEGER[]))
),
applied AS (
    SELECT u.rowid AS place, u.iteration, u.rule, u.a, u.bindings, unnest(u.bindings) AS built
    FROM union_log AS u
    SEMI JOIN made ON made.rule = u.rule AND made.iteration = u.iteration
),
first_of AS (
    SELECT m.id, arg_min({'a': p.a, 'bindings': p.bindings, 'rule': p.rule}, p.place) AS application
    FROM made AS m
    JOIN applied AS p ON p.built = m.id AND p.rule = m.rule AND p.iteration = m.iteration
    GROUP BY m.id
)
SELECT
    f.id, root.parent,
    list(DISTINCT operand.parent ORDER BY operand.parent) FILTER (operand.parent IS NOT NULL)
FROM (
    SELECT first_of.id, application.a AS a, unnest(list_select(application.bindings, rule.operands)) AS operand
    FROM first_of JOIN rule ON rule.id = first_of.application.rule
) AS f
JOIN eclass AS root ON root.id = f.a
LEFT JOIN eclass AS operand ON operand.id = f.operand
GROUP BY f.id, root.parent
ORDER BY f.id
