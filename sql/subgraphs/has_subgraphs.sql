-- Whether a search over subgraphs has been made in this database.
SELECT count(*) > 0 FROM duckdb_tables() WHERE table_name = 'subgraph'
