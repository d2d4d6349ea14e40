-- Columns that a claim needs of a job that never ran (WaitingRow in record.ts). If `worn` is 1, the caller reads the whole row. Nine
-- columns take 1.0 µs a job, all twenty 1.9 µs. `longest`: the longest `data` that is read at once; a longer one is null.
job, id, name, CASE WHEN octet_length(data) <= :longest THEN data END, opts, priority, timestamp, (
-- include: is-worn
) AS worn, extras
