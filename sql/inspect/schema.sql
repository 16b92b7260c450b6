-- The tables and views of a database's file, and their comments.
SELECT
    CASE WHEN t.schema_name = 'main' THEN t.name ELSE t.schema_name || '.' || t.name END AS name,
    t.is_view, t.comment, c.column_name, c.data_type, c.comment
FROM (
    SELECT schema_name, table_name AS name, false AS is_view, comment
    FROM duckdb_tables() WHERE NOT internal AND NOT temporary
    UNION ALL
    SELECT schema_name, view_name, true, comment FROM duckdb_views() WHERE NOT internal AND NOT temporary
) AS t
JOIN duckdb_columns() AS c
    ON c.schema_name = t.schema_name AND c.table_name = t.name AND c.database_name <> 'temp'
ORDER BY t.schema_name <> 'main', t.schema_name, t.name, c.column_index
