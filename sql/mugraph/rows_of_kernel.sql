-- The rows that a kernel came from: terms, and the derivations that were chosen.
SELECT
    kernel, tensor, op, function, variable, a, b, term, operators, stage, abstract_class, fingerprint, derivations, config
FROM kernel_term
WHERE mugraph = $mugraph
ORDER BY kernel, operators, term
