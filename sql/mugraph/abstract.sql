-- The saturated abstract e-graph as the search joins it: a row for each e-node, with its class.
-- A root mean square has the number of elements under the root as its size, a sum those that it adds.
-- The tuple that several outputs are in the e-graph is no operator of the program.
CREATE TABLE abstract AS
SELECT
    CASE op WHEN 'abstract_sum' THEN 'sum' WHEN 'abstract_function' THEN split_part(name, ' ', 1) ELSE op END AS op,
    name,
    CASE
        WHEN op = 'abstract_sum' THEN elements
        WHEN name LIKE 'rms %' OR name LIKE 'reduce_max %' THEN split_part(name, ' ', 2)::INTEGER ELSE 0 END
        AS size,
    a, b, class
FROM (
    SELECT
        y.op, coalesce(y.attrs ->> '$.function', '') AS name,
        (y.attrs ->> '$.size')::INTEGER AS elements, e.c0 AS a, e.c1 AS b, e.class
    FROM enode AS e
    JOIN signature AS s ON s.id = e.signature
    JOIN symbol AS y ON y.id = s.symbol
    WHERE e.c0 > 0 AND y.op <> 'noop'
);
