-- How the e-graph grew, iteration by iteration.
SELECT iteration, e_nodes, e_classes, matches, unions, filtered, statements, seconds
FROM iteration_log ORDER BY iteration
