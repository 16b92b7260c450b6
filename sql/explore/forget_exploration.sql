-- Where an exploration of this e-graph was, before another one begins.
DELETE FROM checkpoint;
DELETE FROM meta WHERE key = 'stop_reason'
