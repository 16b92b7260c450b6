-- The gain of a run, in one line, and whether that was measured or is modelled.
INSERT OR REPLACE INTO meta VALUES ('gain', $text)
