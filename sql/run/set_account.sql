-- The account of a run, as JSON: the head of its page says it as the terminal does.
INSERT OR REPLACE INTO meta VALUES ('account', $text)
