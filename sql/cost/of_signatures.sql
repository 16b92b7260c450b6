-- Costs of some signatures, as far as they are known.
SELECT signature, cost_us FROM cost WHERE signature IN (SELECT unnest($signatures))
