-- Returns the last of the first keys of groups behind a key, and how many they are.
SELECT max(key), count(*) FROM (SELECT key FROM groups WHERE queue = :queue AND key > :after ORDER BY key LIMIT :count + 0)
