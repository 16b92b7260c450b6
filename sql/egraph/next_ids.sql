-- The next free ids of rules and of instances: an exploration that continues another keeps its reasons.
SELECT
    (SELECT coalesce(max(id), 0) + 1 FROM rule) AS rule,
    (SELECT coalesce(max(id), 0) + 1 FROM instance_log) AS instance
