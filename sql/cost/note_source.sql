-- Which source fills in the costs that nobody else has put there.
INSERT OR REPLACE INTO meta VALUES ('cost_source', $source)
