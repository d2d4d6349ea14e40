-- Decides about a new job with a deduplication, and does what that asks for. _owner: the job that owns the entry, if the new job is not to
-- be added. _kept: the new job is to be the entry's draft. _until: the end of the entry that the new job will own.
-- An add that changes nothing locks nothing: many adds of one id do not wait for one another's commits.
-- Called by: put-unique.sql.
-- States: 2 delayed, 3 active.
CREATE FUNCTION deduplicate(
  _queue int, _clock float8, _id text, _mode json, INOUT _change journal, OUT _owner text, OUT _kept boolean,
  OUT _until bigint
) RETURNS record LANGUAGE plpgsql AS $body$
DECLARE
  _now bigint := floor(_clock);
  _keep boolean := coalesce(_mode ->> 'keepLastIfActive' = 'true', false);
  _replace boolean := coalesce(_mode ->> 'replaceDelayed' = 'true', false);
  _end bigint := CASE WHEN NOT _keep THEN ceil(_clock + (_mode ->> 'ttlMs')::float8) END;
  _extend boolean := coalesce(_mode ->> 'extend' = 'true', false) AND _end IS NOT NULL;
  _entry record;
BEGIN
  FOR _look IN 1 .. 2 LOOP
    SELECT d.job, d.until, d.draft, j.state, j.at,
      -- include: counts
      AS counts
    INTO _entry FROM dedup d
    LEFT JOIN LATERAL (SELECT ctid AS at, state FROM jobs j WHERE j.queue = _queue AND j.id = d.job AND true OFFSET 0) j ON true
    WHERE d.queue = _queue AND d.id = _mode ->> 'id';
    EXIT WHEN _entry.counts AND NOT (_extend OR coalesce(_keep AND _entry.state = 3 OR _replace AND _entry.state = 2, false));
    IF _look = 1 THEN PERFORM lock_entry(_queue, _mode ->> 'id'); END IF;
  END LOOP;
  _until := _end;
  IF _entry.counts IS NOT TRUE THEN RETURN; END IF;
  IF _replace AND _entry.state = 2 THEN
    -- An owner that another transaction holds counts as not delayed.
    PERFORM FROM jobs WHERE ctid = _entry.at AND state + 0 = 2 AND (xmax = 0 OR untouched(xmax)) FOR UPDATE SKIP LOCKED;
    IF FOUND THEN
      PERFORM drop_jobs(_queue, ARRAY[_entry.at]);
      IF NOT _extend THEN _until := _entry.until; END IF;
      _change.delayed := _change.delayed - 1;
      _change.events := _change.events + 2;
      _change.body := concat_ws(
        ',', _change.body, event('removed', ARRAY[_entry.job], '{"prev":"delayed"}'),
        event('deduplicated', ARRAY[_id], json_build_object('deduplicationId', _mode ->> 'id', 'deduplicatedJobId', _entry.job))
      );
      RETURN;
    END IF;
  END IF;
  _owner := _entry.job;
  _kept := _keep AND _entry.state = 3;
  IF _extend AND _entry.draft IS NULL THEN UPDATE dedup SET until = _end WHERE queue = _queue AND id = _mode ->> 'id'; END IF;
  _change.events := _change.events + 1;
  _change.body := concat_ws(
    ',', _change.body,
    event('deduplicated', ARRAY[_owner], json_build_object('deduplicationId', _mode ->> 'id', 'deduplicatedJobId', _id))
  );
END
$body$;
