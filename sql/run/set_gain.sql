-- What a run gained, in one line, and whether that was measured or is modelled.
INSERT OR REPLACE INTO meta VALUES ('gain', $text)
