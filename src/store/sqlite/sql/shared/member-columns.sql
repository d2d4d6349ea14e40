-- Columns that a claim needs of a job of a group (MemberRow in record.ts). waiting-jobs.sql explains them.
job, id, name, CASE WHEN octet_length(data) <= :longest THEN data END, opts, priority, timestamp, (
-- include: is-worn
) AS worn, ord, extras
