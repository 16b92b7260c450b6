-- The table of the abstract e-graph's e-nodes, for a process that gets its rows from another.
CREATE TABLE abstract (op VARCHAR, name VARCHAR, size INTEGER, a INTEGER, b INTEGER, class INTEGER);
