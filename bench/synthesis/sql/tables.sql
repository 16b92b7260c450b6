-- The tables of a synthesis: what is stored of terms, of pairs of them, and of the rules that these become.
CREATE TABLE IF NOT EXISTS stage (      -- stages that have ended: where a synthesis goes on
    name VARCHAR PRIMARY KEY,
    rows BIGINT NOT NULL,               -- that it left over
    cpu_s DOUBLE NOT NULL
);
CREATE TABLE IF NOT EXISTS mined (      -- windows of optimized models: a few operators with one result
    model VARCHAR NOT NULL,
    cost_us DOUBLE NOT NULL,            -- modelled, of the window as it stands in the model
    whole_us DOUBLE NOT NULL,           -- modelled, of the model
    setting INTEGER NOT NULL,           -- in which its term is built
    window_id INTEGER NOT NULL,         -- of its form; equal forms are one window
    types VARCHAR NOT NULL              -- those of its leaves in the model: JSON
);
CREATE TABLE IF NOT EXISTS setting (    -- worlds of terms
    id INTEGER PRIMARY KEY,
    inputs VARCHAR NOT NULL,            -- names and types: JSON
    exact BOOLEAN NOT NULL              -- values are residues modulo a prime, else float64
);
CREATE TABLE IF NOT EXISTS symbol (     -- operators with attributes; inputs have their name for an operator
    setting INTEGER NOT NULL,
    id INTEGER NOT NULL,
    op VARCHAR NOT NULL,
    attrs VARCHAR NOT NULL,             -- JSON
    part INTEGER                        -- of an operator of several results
);
CREATE TABLE IF NOT EXISTS term (       -- an operator over classes, as in an e-graph
    setting INTEGER NOT NULL,
    id BIGINT NOT NULL,
    symbol INTEGER NOT NULL,
    c0 INTEGER NOT NULL, c1 INTEGER NOT NULL, c2 INTEGER NOT NULL,  -- classes; -1: no operand
    size INTEGER NOT NULL,              -- operators, shared ones counted once
    type INTEGER NOT NULL,
    window_id INTEGER NOT NULL,         -- -1: enumerated
    fingerprint UBIGINT NOT NULL
);
CREATE TABLE IF NOT EXISTS class (      -- distinct fingerprints below the last size: the first term of each
    setting INTEGER NOT NULL,
    id INTEGER NOT NULL,
    symbol INTEGER NOT NULL,
    c0 INTEGER NOT NULL, c1 INTEGER NOT NULL, c2 INTEGER NOT NULL,
    size INTEGER NOT NULL,
    of_window BOOLEAN NOT NULL,         -- a part of a window, as it is written
    fingerprint UBIGINT NOT NULL
);
CREATE TABLE IF NOT EXISTS candidate (  -- pairs of one fingerprint, distinct up to names
    id INTEGER PRIMARY KEY,
    setting INTEGER NOT NULL,
    source VARCHAR NOT NULL, target VARCHAR NOT NULL,  -- with the setting's inputs as variables
    law VARCHAR NOT NULL,               -- both sides, variables by first occurrence: what tells laws apart
    saves_us DOUBLE NOT NULL,           -- modelled, on the setting's small types
    window_id INTEGER NOT NULL,
    gain DOUBLE NOT NULL,               -- the largest share of a model's cost that it may save, modelled
    models VARCHAR NOT NULL,            -- where it may save something: names with shares, as JSON
    status VARCHAR NOT NULL,            -- waiting, or how it left the funnel
    note VARCHAR NOT NULL
);
CREATE TABLE IF NOT EXISTS found_rule ( -- what passed all stages
    candidate INTEGER PRIMARY KEY,
    text VARCHAR NOT NULL,              -- in the rule language
    evidence VARCHAR NOT NULL,
    trials INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS word_holds ( -- of one rule: which words of conditions hold on which examples
    example INTEGER NOT NULL,
    word INTEGER NOT NULL,
    holds BOOLEAN NOT NULL              -- whether the law does
);
