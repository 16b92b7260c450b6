-- Lift the labels of classes (round a cycle there would be no end: see lifting.py).
UPDATE eclass SET height = lifted.height
FROM (SELECT unnest($classes) AS class, unnest($heights) AS height) AS lifted
WHERE eclass.id = lifted.class
