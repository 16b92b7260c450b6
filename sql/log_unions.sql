INSERT INTO union_log SELECT $iteration, rule, a, b FROM union_pair
