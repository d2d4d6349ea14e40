-- Returns a row if a session names a presence file.
SELECT 1 FROM sessions WHERE presence = :presence LIMIT 1
