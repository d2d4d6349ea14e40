-- Writing data, progress, logs and events.

-- name: write_jobs
-- Writes data, progress, log rows and steps of jobs, and records events of users: _names has the names of steps and events, and _texts the
-- args of events.
-- _within: as in settle.
-- Called by: write.ts.
-- States: 3 active.
CREATE FUNCTION write_jobs(
  _name text, _kinds text[], _ids text[], _owners text[], _fences bigint[], _texts text[], _keeps float8[],
  _names text[] DEFAULT NULL, _within boolean DEFAULT false
) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _queue int := (SELECT queue FROM queues WHERE name = _name);
  _locked text[];
  _replies text[] := '{}';
  _one record;
  _job record;
  _first int;
  _next int;
  _change journal;
  _told text[] := '{}';
  _progress text[] := '{}';
  _large int[];
BEGIN
  IF _queue IS NULL AND 'event' = ANY (_kinds) THEN _queue := queue_of(_name); END IF;
  _change := no_change(_queue);
  -- include: lock-jobs
  FOR _one IN
    SELECT * FROM unnest(_kinds, _ids, _owners, _fences, _texts, _keeps, _names) w(kind, id, owner, fence, said, keep, event)
  LOOP
    IF _one.kind = 'event' THEN
      -- Adds the event of a user to _change, behind the events of the writes before it.
      -- include: tell-progress
      _change.events := _change.events + 1;
      _change.body := concat_ws(',', _change.body, event(_one.event, NULL, json_build_object('args', _one.said)));
      _replies := _replies || '["done"]'::text;
      CONTINUE;
    END IF;
    SELECT state, session, fence, log_first, log_next INTO _job FROM jobs
    WHERE queue = _queue AND id = _one.id AND _one.id = ANY (_locked);
    IF NOT FOUND THEN
      _replies := _replies || '["missing"]'::text;
    ELSIF _one.owner IS NOT NULL
        AND NOT coalesce(_job.state = 3 AND _job.session = _one.owner AND _job.fence = _one.fence, false) THEN
      _replies := _replies || '["lost"]'::text;
    ELSIF _one.kind = 'data' THEN
      UPDATE jobs SET data = _one.said WHERE queue = _queue AND id = _one.id;
      _replies := _replies || '["done"]'::text;
    ELSIF _one.kind = 'progress' THEN
      UPDATE jobs SET progress = _one.said WHERE queue = _queue AND id = _one.id;
      _told := _told || _one.id;
      _progress := _progress || _one.said;
      _replies := _replies || '["done"]'::text;
    ELSIF _one.kind = 'step' THEN
      _replies := _replies || write_step(_queue, _one.id, _one.owner IS NOT NULL, _one.event, _one.said);
    ELSE
      -- Writes a log row, or removes old ones, and returns how many the job has now.
      _next := _job.log_next;
      IF _one.kind = 'log' THEN
        INSERT INTO logs (queue, job, number, row) VALUES (_queue, _one.id, _next, _one.said);
        _next := _next + 1;
      END IF;
      _first := greatest(_job.log_first, _next - _one.keep);
      IF _first > _job.log_first THEN DELETE FROM logs WHERE queue = _queue AND job = _one.id AND number < _first; END IF;
      UPDATE jobs SET log_first = _first, log_next = _next WHERE queue = _queue AND id = _one.id;
      _replies := _replies || ('["done",' || _next - _first || ']');
    END IF;
  END LOOP;
  -- include: tell-progress
  -- include: note
  IF _change.events > 0 AND NOT _within THEN
    -- include: fold-sometimes
  END IF;
  RETURN '[' || array_to_string(_replies, ',') || ']';
END
$body$;

-- part: tell-progress
-- Adds the progress events of _told to _change. A large value stays with its job.
-- EVENT_VALUE_BYTES = 4096
IF cardinality(_told) > 0 THEN
  IF pg_column_size(_progress) > 4096 THEN
    SELECT array_agg(CASE WHEN octet_length(said) > 4096 THEN NULL ELSE said END ORDER BY n),
      CASE WHEN bool_or(octet_length(said) > 4096) THEN array_agg(CASE WHEN octet_length(said) > 4096 THEN 1 END ORDER BY n) END
    INTO _progress, _large FROM unnest(_progress) WITH ORDINALITY o(said, n);
  END IF;
  _change.events := _change.events + cardinality(_told);
  _change.body := concat_ws(
    ',', _change.body,
    event(
      'progress', _told,
      CASE WHEN _large IS NULL THEN json_build_object('data', _progress)
        ELSE json_build_object('data', _progress, 'large', _large) END
    )
  );
  _told := '{}';
  _progress := '{}';
  _large := NULL;
END IF;
