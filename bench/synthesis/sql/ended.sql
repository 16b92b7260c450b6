-- Whether a stage has ended.
SELECT name FROM stage WHERE name = $stage
