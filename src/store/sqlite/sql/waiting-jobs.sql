-- Returns the first jobs in the claim order (WaitingRow in record.ts): the columns that a claim needs of a job that never ran and has
-- no extras. If `worn` is 1, the caller reads the whole row. Eight columns take 1.0 µs a job, all twenty 1.9 µs. `longest`: the longest
-- `data` that is read at once; a longer one is null.
-- States: 1 waiting.
SELECT job, id, name, CASE WHEN octet_length(data) <= :longest THEN data END, opts, priority, timestamp, (
-- include: is-worn
OR extras IS NOT NULL) AS worn
FROM jobs WHERE queue = :queue AND state = 1 ORDER BY priority, ord LIMIT :count + 0
