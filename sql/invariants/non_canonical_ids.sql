-- A class or child that was merged into another class.
SELECT e.id, e.class
FROM (SELECT id, unnest([class, c0, c1, c2, c3, c4]) AS class FROM enode) AS e
JOIN eclass ON eclass.id = e.class
WHERE eclass.parent <> eclass.id
