-- Returns the job that owns the entry of a deduplication id; null if no entry counts.
-- Called by: entry-owners.sql, lock-entries.sql, own-again.sql.
CREATE FUNCTION entry_owner(_queue int, _now bigint, _id text) RETURNS text LANGUAGE plpgsql AS $body$
BEGIN
  RETURN (
    SELECT d.job FROM dedup d
    LEFT JOIN LATERAL (SELECT state FROM jobs j WHERE j.queue = _queue AND j.id = d.job AND true OFFSET 0) j ON true
    WHERE d.queue = _queue AND d.id = _id AND
      -- include: counts
  );
END
$body$;
