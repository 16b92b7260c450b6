-- Classes in which each word is a part of an operator, a type, an attribute, a rule or a tensor's name.
WITH word AS (SELECT DISTINCT unnest($words::VARCHAR[]) AS word),
signature_hit AS (
    SELECT s.id AS signature, w.word
    FROM signature AS s
    JOIN symbol AS y ON y.id = s.symbol
    JOIN value_type AS t ON t.id = s.type
    JOIN word AS w ON contains(lower(y.op || ' ' || t.type || ' ' || y.attrs), w.word)
),
rule_hit AS (SELECT r.id AS rule, w.word FROM rule AS r JOIN word AS w ON contains(lower(r.name), w.word)),
hit AS (
    SELECT e.class, h.word FROM enode AS e JOIN signature_hit AS h ON h.signature = e.signature
    UNION
    SELECT e.class, h.word FROM enode AS e JOIN rule_hit AS h ON h.rule = e.rule
    UNION
    SELECT c.parent, w.word
    FROM original_value AS v JOIN eclass AS c ON c.id = v.enode JOIN word AS w ON contains(lower(v.name), w.word)
)
SELECT class FROM hit GROUP BY class HAVING count(*) = (SELECT count(*) FROM word) ORDER BY class LIMIT $most
