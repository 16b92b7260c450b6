-- The tables of one e-graph (a world). Those of the first are in the schema main; any other has a schema of its
-- own, and reads what all share (schema.sql) from main.
-- Ids start at 1; 0 in a child column means "no child". An e-class has the id of its first e-node; child columns
-- and enode.class are canonical after a rebuild.

CREATE TABLE meta (key VARCHAR PRIMARY KEY, value VARCHAR NOT NULL);

CREATE TABLE enode (
    id INTEGER NOT NULL,
    class INTEGER NOT NULL,
    signature INTEGER NOT NULL,
    head INTEGER NOT NULL,
    c0 INTEGER NOT NULL, c1 INTEGER NOT NULL, c2 INTEGER NOT NULL, c3 INTEGER NOT NULL, c4 INTEGER NOT NULL,
    iteration INTEGER NOT NULL,  -- born in; 0 is the original graph
    rule INTEGER NOT NULL,       -- born by; 0 is the original graph
    stamp INTEGER NOT NULL,      -- clock when the row was last written: semi-naive matching
    filtered BOOLEAN NOT NULL    -- dropped by the cycle filter: neither matched nor extracted
);

-- Union-find and class data in one: a row for every class that ever was; canonical where parent = id.
-- height is a label, not a length: above the height of every child of every kept e-node in the class.
CREATE TABLE eclass (
    id INTEGER NOT NULL, parent INTEGER NOT NULL, type INTEGER NOT NULL, height INTEGER NOT NULL,
    weight_only BOOLEAN NOT NULL
);

CREATE VIEW union_find AS SELECT id, parent FROM eclass;

-- Every union, in the order in which they were asked for (rowid), and its reason: the rule (0: congruence),
-- its instance and the classes that this was applied to, as they were named then, and which of the rule's
-- sources (0 or 1) it is whose class a, or b, became one with the class of its target.
CREATE TABLE union_log (
    iteration INTEGER NOT NULL, rule INTEGER NOT NULL, a INTEGER NOT NULL, b INTEGER NOT NULL,
    instance INTEGER, source INTEGER, bindings INTEGER[]
);

-- The instances that unions name: a rule, and the signatures of the e-nodes that its sources match, in
-- pre-order, one source after the other.
CREATE TABLE instance_log (id INTEGER NOT NULL, rule INTEGER NOT NULL, signatures INTEGER[] NOT NULL);

-- How many matches of a rule were worked on in an iteration, and how long its search took in all
-- (a statement's time is shared evenly by the rules that it matches).
CREATE TABLE match_log (iteration INTEGER NOT NULL, rule INTEGER NOT NULL, matches BIGINT NOT NULL);
CREATE TABLE rule_time (rule INTEGER NOT NULL, seconds DOUBLE NOT NULL);

-- The unions of the phase that is running, by the round in which they are carried out.
CREATE TEMP TABLE union_pair (
    round INTEGER, rule INTEGER, a INTEGER, b INTEGER, instance INTEGER, source INTEGER, bindings INTEGER[]
);

CREATE TABLE iteration_log (
    iteration INTEGER NOT NULL, e_nodes BIGINT NOT NULL, e_classes BIGINT NOT NULL, matches BIGINT NOT NULL,
    unions BIGINT NOT NULL, filtered BIGINT NOT NULL, statements BIGINT NOT NULL, seconds DOUBLE NOT NULL
);

-- Where an exploration is after each of its iterations, so that another process can go on from there: see
-- explore/checkpoint.py. Only in files.
CREATE TABLE checkpoint (
    first_rule INTEGER NOT NULL, iteration INTEGER NOT NULL, stopped VARCHAR NOT NULL,
    multi_done INTEGER NOT NULL, since_single INTEGER NOT NULL, since_multi INTEGER NOT NULL,
    quiet BOOLEAN NOT NULL, left_out BOOLEAN NOT NULL, scarce BOOLEAN NOT NULL,
    original BIGINT NOT NULL,
    next_id INTEGER NOT NULL, clock INTEGER NOT NULL, e_nodes BIGINT NOT NULL, e_classes BIGINT NOT NULL,
    rule_seconds DOUBLE[] NOT NULL
);

-- The original graph: its e-nodes as they were loaded (children with zeros, as in enode), which value was
-- computed by which of them, what the graph returns, and the weights that are no parameters but sizes,
-- indices and the like (elements in C order, of the declared type).
CREATE TABLE original_node (enode INTEGER NOT NULL, signature INTEGER NOT NULL, children INTEGER[] NOT NULL);
CREATE TABLE original_weight (name VARCHAR NOT NULL, data BLOB NOT NULL);
CREATE TABLE original_value (name VARCHAR NOT NULL, enode INTEGER NOT NULL, node_name VARCHAR NOT NULL);
CREATE TABLE graph_output (position INTEGER NOT NULL, name VARCHAR NOT NULL, class INTEGER NOT NULL);

-- Extractions: after which iteration, what the graph found costs, what the cheapest so far costs, and what no
-- graph of the e-graph of that time costs less than (0: unknown). The last is the final one.
CREATE TABLE extraction_log (
    iteration INTEGER NOT NULL, cost_us DOUBLE NOT NULL, best_us DOUBLE NOT NULL, bound_us DOUBLE NOT NULL,
    optimal BOOLEAN NOT NULL, seconds DOUBLE NOT NULL, final BOOLEAN NOT NULL
);

-- The cheapest choice that extractions in between have found, so that it can be found again when the e-graph
-- has grown: children first, by signature and children, since ids go when e-nodes become equal.
CREATE TABLE kept_choice (
    position BIGINT NOT NULL, signature INTEGER NOT NULL,
    c0 INTEGER NOT NULL, c1 INTEGER NOT NULL, c2 INTEGER NOT NULL, c3 INTEGER NOT NULL, c4 INTEGER NOT NULL
);

-- The last extraction: the e-node chosen for each class that the result needs.
CREATE TABLE chosen (class INTEGER NOT NULL, enode INTEGER NOT NULL);

-- The edges of the e-graph that the cycle filter kept: from an e-node's class to each of its children.
CREATE VIEW kept_edge AS
SELECT * FROM (
    SELECT id AS enode, signature, class, unnest([c0, c1, c2, c3, c4]) AS child FROM enode WHERE NOT filtered
)
WHERE child > 0;

-- For people: an e-node with its operator, attributes and type spelled out.
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
