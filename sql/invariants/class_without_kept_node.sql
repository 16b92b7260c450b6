-- A class all of whose e-nodes the cycle filter dropped.
SELECT class FROM enode GROUP BY class HAVING bool_and(filtered)
