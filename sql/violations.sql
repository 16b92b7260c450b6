-- Kept e-nodes that are not above all their children, as far as the labels say: every cycle goes through
-- one. Gives their number, and the span of heights in which cycles can be.
SELECT count(*), min(parent.height), max(child.height)
FROM kept_edge AS e
JOIN eclass AS child ON child.id = e.child
JOIN eclass AS parent ON parent.id = e.class
WHERE child.height >= parent.height
