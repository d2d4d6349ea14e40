-- Returns a row if a table has a column.
SELECT 1 FROM pragma_table_info(:table) WHERE name = :column
