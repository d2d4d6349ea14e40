-- Lists the names of queues.
SELECT name FROM queues WHERE name > :after ORDER BY name LIMIT :count + 0
