-- Pairs of tensors that one kernel can make: some configuration has a term for each.
SELECT DISTINCT a.tensor, b.tensor
FROM implementation AS a
JOIN implementation AS b ON b.config = a.config AND b.tensor > a.tensor
ORDER BY ALL
