-- Why exploration ended; another exploration of the same e-graph may have ended before.
INSERT OR REPLACE INTO meta VALUES ('stop_reason', $reason)
