-- Heads, which patterns compare, depend on the rules: a list of heads by symbol, whose ids are dense, says which.
UPDATE signature SET head = $heads[symbol]
