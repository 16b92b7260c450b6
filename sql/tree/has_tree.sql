-- Whether a tree search has been made in this database.
SELECT count(*) > 0 FROM duckdb_tables() WHERE table_name = 'tree_decision'
