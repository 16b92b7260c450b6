-- Delete the checkpoint of the last exploration, before another one begins.
DELETE FROM checkpoint;
DELETE FROM meta WHERE key = 'stop_reason'
