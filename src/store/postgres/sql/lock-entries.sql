-- Locks the entries of several jobs that an add may have to write, in the order of their ids. With one id, an entry that has an owner and is
-- not written stays free. With several, it is locked too: its owner may end before the add comes to it, and the add would then lock it out
-- of order.
-- Called by: put-unique.sql.
CREATE FUNCTION lock_entries(_queue int, _clock float8, _dedups text[]) RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
  _one record;
BEGIN
  FOR _one IN
    SELECT id, bool_or(writes) OR count(*) OVER () > 1 AS writes
    FROM (
      SELECT d ->> 'id' AS id, concat(d ->> 'extend', d ->> 'replaceDelayed', d ->> 'keepLastIfActive') LIKE '%true%' AS writes
      FROM (SELECT text::json AS d FROM unnest(_dedups) text WHERE text IS NOT NULL) modes
    ) modes
    GROUP BY id ORDER BY id COLLATE "C"
  LOOP
    IF _one.writes OR entry_owner(_queue, floor(_clock)::bigint, _one.id) IS NULL THEN PERFORM lock_entry(_queue, _one.id); END IF;
  END LOOP;
END
$body$;
