-- Stages that have ended.
SELECT name, rows, cpu_s FROM stage
