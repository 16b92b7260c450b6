-- The next free ids of rules and of instances, and the last iteration: an exploration goes on after another's.
SELECT
    (SELECT coalesce(max(id), 0) + 1 FROM rule) AS rule,
    (SELECT coalesce(max(id), 0) + 1 FROM instance_log) AS instance,
    (SELECT coalesce(max(iteration), 0) FROM iteration_log) AS iteration
