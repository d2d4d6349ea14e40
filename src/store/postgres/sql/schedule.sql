-- Changes schedules, one after the other. A schedule has next_job and version changed together, so the next job of a version is locked here
-- before its schedule (lock-schedules.sql).
-- _jobs: the job of each slot, null without one; the next arrays are its values.
-- Called by: schedule.ts.
CREATE FUNCTION schedule(
  _name text, _kinds text[], _ids text[], _versions bigint[], _specs text[], _serials boolean[], _ats float8[],
  _counts float8[], _jobs text[], _names text[], _data text[], _opts text[], _priorities int[], _delays float8[],
  _lifos boolean[], _timestamps float8[], _keys text[], _marks smallint[], _extras text[]
) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _clock float8 := clock_ms();
  _queue int := (SELECT queue FROM queues WHERE name = _name);
  _made boolean[] := ARRAY(SELECT kind = 'put' AND version = 0 FROM unnest(_kinds, _versions) WITH ORDINALITY c(kind, version, n) ORDER BY n);
  _replies json[] := '{}';
  _row schedules;
  _status text;
  _started boolean;
  _keeps boolean;
  _change journal;
  _got record;
BEGIN
  -- A transaction that a user leaves open may hold the id of a job.
  PERFORM set_config('lock_timeout', '2s', true);
  IF true = ANY (_made) THEN
    _queue := queue_of(_name);
    UPDATE queues SET scheduled = true WHERE queue = _queue AND NOT scheduled;
  END IF;
  PERFORM lock_schedules(_queue, _ids, _made);
  FOR _n IN 1 .. cardinality(_ids) LOOP
    _row := lock_schedule(_queue, _ids[_n], _made[_n]);
    -- include: schedule-status
    IF _status = 'done' AND _jobs[_n] IS NOT NULL AND NOT _keeps THEN
      -- include: put-slot
    END IF;
    IF _status = 'done' THEN
      -- include: write-schedule
    END IF;
    _replies := _replies || json_build_object(
      'status', _status, 'record', CASE WHEN _row.version > 0 THEN schedule_record(_row) END
    );
  END LOOP;
  DELETE FROM schedules WHERE queue = _queue AND id = ANY (_ids) AND version = 0;
  -- include: fold-sometimes
  RETURN json_strip_nulls(to_json(_replies));
END
$body$;
