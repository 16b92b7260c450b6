-- What greedy extraction in SQL works on, for any number of e-graphs at once: e-nodes with their costs, and
-- the distinct child classes of each.
CREATE OR REPLACE TEMP TABLE greedy_node (
    egraph INTEGER NOT NULL, enode INTEGER NOT NULL, class INTEGER NOT NULL, cost_us DOUBLE NOT NULL,
    arity INTEGER NOT NULL  -- distinct child classes
);
CREATE OR REPLACE TEMP TABLE greedy_edge (
    egraph INTEGER NOT NULL, enode INTEGER NOT NULL, child INTEGER NOT NULL
);
