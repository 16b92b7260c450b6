-- No height label lies above another: those that a subgraph needs are raised then.
UPDATE eclass SET height = 0 WHERE height > 0
