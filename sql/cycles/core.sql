-- The edges that may lie on a cycle: below and above kept e-nodes whose labels are violated, of which every cycle
-- has one. The age of an e-node is its id.
CREATE OR REPLACE TEMP TABLE cycle_core AS
WITH RECURSIVE
edge AS MATERIALIZED (
    SELECT k.enode, k.class, k.child, parent.height, child.height AS child_height
    FROM kept_edge AS k JOIN eclass AS parent ON parent.id = k.class JOIN eclass AS child ON child.id = k.child
),
violated AS MATERIALIZED (SELECT * FROM edge WHERE child_height >= height),
within AS MATERIALIZED (
    SELECT edge.*
    FROM edge, (SELECT min(height) AS low, max(child_height) AS high FROM violated) AS span
    WHERE edge.height BETWEEN low AND high AND edge.child_height BETWEEN low AND high
),
down(class) AS (
    SELECT child FROM violated UNION SELECT w.child FROM down JOIN within AS w ON w.class = down.class
),
up(class) AS (
    SELECT class FROM violated UNION SELECT w.class FROM up JOIN within AS w ON w.child = up.class
),
amid AS MATERIALIZED (SELECT class FROM down SEMI JOIN up USING (class))
SELECT within.*, within.enode AS age
FROM within
SEMI JOIN amid ON amid.class = within.class
SEMI JOIN amid AS lower ON lower.class = within.child
