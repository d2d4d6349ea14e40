-- Returns a row if a table or an index is there.
SELECT 1 FROM sqlite_schema WHERE name = :name
