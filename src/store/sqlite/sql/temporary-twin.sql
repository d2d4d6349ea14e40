-- Returns a temporary table or view of a connection that has the name of a table of the file, and would be taken for it.
SELECT name FROM sqlite_temp_schema WHERE type IN ('table', 'view') AND name IN (SELECT name FROM main.sqlite_schema) LIMIT 1
