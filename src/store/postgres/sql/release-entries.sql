-- Releases the entries of jobs that have ended or, _removed, were removed by a caller. An entry with an end outlives the end of its owner.
-- A draft becomes a job that owns the entry.
-- Called by: leave.sql.
CREATE FUNCTION release_entries(
  _queue int, _clock float8, _jobs text[], _extras text[], _removed boolean, INOUT _change journal
) RETURNS journal LANGUAGE plpgsql AS $body$
DECLARE
  _entries text[];
  _drafts text[];
  _draft json;
  _got record;
BEGIN
  SELECT array_agg(id), array_agg(draft) INTO _entries, _drafts
  FROM (
    SELECT o.id, d.draft FROM (
      SELECT job, extras::json ->> 'd' AS id FROM unnest(_jobs, _extras) o(job, extras) ORDER BY extras::json ->> 'd' COLLATE "C" OFFSET 0
    ) o, LATERAL (SELECT draft, until FROM dedup d WHERE d.queue = _queue AND d.id = o.id AND d.job = o.job FOR UPDATE) d
    WHERE _removed OR d.until IS NULL
  ) owned;
  DELETE FROM dedup WHERE queue = _queue AND id = ANY (_entries) AND (_removed OR draft IS NULL);
  IF _removed THEN RETURN; END IF;
  FOR _n IN 1 .. coalesce(cardinality(_entries), 0) LOOP
    CONTINUE WHEN _drafts[_n] IS NULL;
    _draft := _drafts[_n];
    _got := put_jobs(
      _queue, _clock, ARRAY[_draft ->> 0], ARRAY[_draft ->> 1], ARRAY[_draft ->> 2], ARRAY[_draft ->> 3],
      ARRAY[(_draft ->> 4)::int], ARRAY[(_draft ->> 5)::float8], ARRAY[(_draft ->> 6)::boolean], ARRAY[(_draft ->> 7)::float8],
      CASE WHEN _draft ->> 8 IS NOT NULL THEN ARRAY[_draft ->> 8] END, ARRAY[(_draft ->> 9)::smallint], ARRAY[_draft ->> 10], _change
    );
    _change := _got._change;
    IF _got._made IS NULL THEN
      UPDATE dedup SET job = _got._chosen[1], draft = NULL WHERE queue = _queue AND id = _entries[_n];
    ELSE
      DELETE FROM dedup WHERE queue = _queue AND id = _entries[_n];
    END IF;
  END LOOP;
END
$body$;
