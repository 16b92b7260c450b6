-- Whether the tables of what is learned are there.
SELECT count(*) > 0 FROM duckdb_tables() WHERE table_name = 'rule_use'
