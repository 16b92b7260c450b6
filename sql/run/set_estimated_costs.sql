-- How many of the costs under which the graph was extracted are estimates, where others were measured; or ''.
INSERT OR REPLACE INTO meta VALUES ('estimated_costs', $text)
