-- A stage has ended.
INSERT INTO stage VALUES ($stage, $rows, $cpu_s)
