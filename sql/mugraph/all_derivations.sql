-- All derivations, for another process.
SELECT term, op, name, variable, a, b FROM derivation ORDER BY ALL
