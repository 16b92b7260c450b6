-- Graphs that were timed whole against an original in a setting: a row for each. The same graphs do not race again. And the seconds of measuring and racing of a run, and its choice.
CREATE TABLE IF NOT EXISTS raced_graph (
    original VARCHAR NOT NULL,       -- hash of the original's content
    graph VARCHAR NOT NULL,          -- of the other graph's
    setting VARCHAR NOT NULL,        -- what graphs were fed with, and how a race is run
    kind VARCHAR NOT NULL, device VARCHAR NOT NULL, driver VARCHAR NOT NULL, libraries VARCHAR NOT NULL,
    protocol INTEGER NOT NULL,
    speedup DOUBLE NOT NULL, low DOUBLE NOT NULL, high DOUBLE NOT NULL,  -- how many times as fast as the original; interval of 99 %
    heats INTEGER NOT NULL,
    is_final BOOLEAN NOT NULL,       -- it won, and these heats are its own with the original alone
    noise DOUBLE NOT NULL, noise_low DOUBLE NOT NULL, noise_high DOUBLE NOT NULL, noise_heats INTEGER NOT NULL,  -- the original against itself
    date VARCHAR NOT NULL,           -- UTC, ISO 8601
    PRIMARY KEY (original, graph, setting, kind, device, driver, libraries, protocol)
);
CREATE TABLE IF NOT EXISTS run_seconds (
    run VARCHAR NOT NULL,            -- hash of a model and of what it was searched with
    what VARCHAR NOT NULL,           -- measuring (single operators) or racing (whole graphs)
    kind VARCHAR NOT NULL, device VARCHAR NOT NULL, driver VARCHAR NOT NULL, libraries VARCHAR NOT NULL,
    protocol INTEGER NOT NULL,
    seconds DOUBLE NOT NULL,         -- in all runs of this hash
    PRIMARY KEY (run, what, kind, device, driver, libraries, protocol)
);
CREATE TABLE IF NOT EXISTS settled_choice (
    run VARCHAR NOT NULL,            -- hash of a model and of what it was searched with
    setting VARCHAR NOT NULL,        -- as in raced_graph
    kind VARCHAR NOT NULL, device VARCHAR NOT NULL, driver VARCHAR NOT NULL, libraries VARCHAR NOT NULL,
    protocol INTEGER NOT NULL,
    graph VARCHAR NOT NULL,          -- hash of the graph that won
    choice VARCHAR NOT NULL,         -- its e-nodes, JSON
    is_dearer BOOLEAN NOT NULL,      -- it cost more than the original by the sums
    cost_ratio DOUBLE NOT NULL,      -- its cost by the sums / the original's
    has_held BOOLEAN NOT NULL,       -- there was nothing left to race; else the time was over
    PRIMARY KEY (run, setting, kind, device, driver, libraries, protocol)
);
