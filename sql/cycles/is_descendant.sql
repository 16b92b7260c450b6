-- Whether a root of the application is a variable's class or below it.
SELECT count(*) > 0
FROM (SELECT root0, root1, unnest(b) AS variable FROM application) AS a
JOIN descendant AS d ON d.class = a.variable AND d.descendant IN (a.root0, a.root1)
