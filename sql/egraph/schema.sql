-- What all e-graphs of a database share, in its schema main: interned symbols, types and signatures, the rules,
-- and what a signature costs. The tables of one e-graph are in world.sql.

-- How a run was asked for, so that another process can take it up: see resuming/record.py.
CREATE TABLE run_record (key VARCHAR NOT NULL, value VARCHAR NOT NULL);

-- Interned: an operator with its attributes (JSON) and its number of children. Foldable: on operands that
-- are known before inference, so is the result (not so for an input, or for random numbers).
CREATE TABLE symbol (
    id INTEGER NOT NULL, op VARCHAR NOT NULL, attrs VARCHAR NOT NULL, arity INTEGER NOT NULL,
    foldable BOOLEAN NOT NULL
);

-- Interned: element type and shape, e.g. float32[64,1024]; tuples in parentheses.
CREATE TABLE value_type (id INTEGER NOT NULL, type VARCHAR NOT NULL);

-- Interned: a symbol on operands of given types, and the type of its result. This is the shape analysis:
-- an e-node's type is its signature's. It is also the configuration that has a cost.
CREATE TABLE signature (
    id INTEGER NOT NULL, symbol INTEGER NOT NULL, operands INTEGER[] NOT NULL, type INTEGER NOT NULL,
    head INTEGER NOT NULL  -- what patterns compare: operator, arity, and the attributes that rules name
);

-- text is the rule in the rule language. The bindings of its applications (see union_log) have the classes
-- of its tensor variables at the positions of operands (from 1), and of what it builds after leaves others.
CREATE TABLE rule (
    id INTEGER NOT NULL, name VARCHAR NOT NULL, law VARCHAR NOT NULL, sources INTEGER NOT NULL,
    unsound BOOLEAN NOT NULL, file VARCHAR NOT NULL, line INTEGER NOT NULL, text VARCHAR NOT NULL,
    operands INTEGER[] NOT NULL, leaves INTEGER NOT NULL
);

-- Microseconds of one application of a signature; replace rows to put in your own costs.
CREATE TABLE cost (signature INTEGER NOT NULL, cost_us DOUBLE NOT NULL, source VARCHAR NOT NULL);
