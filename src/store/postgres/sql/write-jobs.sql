-- Writes data, progress and log rows of jobs.
-- Called by: write.ts.
-- States: 3 active.
-- EVENT_VALUE_BYTES = 4096
CREATE FUNCTION write_jobs(
  _name text, _kinds text[], _ids text[], _owners text[], _fences bigint[], _texts text[], _keeps float8[]
) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _queue int := (SELECT queue FROM queues WHERE name = _name);
  _replies text[] := '{}';
  _one record;
  _job record;
  _first int;
  _next int;
  _change journal := no_change(_queue);
  _told text[] := '{}';
  _progress text[] := '{}';
  _large int[];
BEGIN
  PERFORM FROM (SELECT DISTINCT id FROM unnest(_ids) id ORDER BY id) o,
    LATERAL (SELECT FROM jobs WHERE queue = _queue AND id = o.id FOR UPDATE) j;
  FOR _one IN
    SELECT * FROM unnest(_kinds, _ids, _owners, _fences, _texts, _keeps) WITH ORDINALITY w(kind, id, owner, fence, said, keep, n)
  LOOP
    SELECT state, session, fence, log_first, log_next INTO _job FROM jobs WHERE queue = _queue AND id = _one.id;
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
    ELSE
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
  IF cardinality(_told) > 0 THEN
    _change.events := cardinality(_told);
    IF pg_column_size(_progress) > 4096 THEN
      SELECT array_agg(CASE WHEN octet_length(said) > 4096 THEN NULL ELSE said END ORDER BY n),
        CASE WHEN bool_or(octet_length(said) > 4096) THEN array_agg(CASE WHEN octet_length(said) > 4096 THEN 1 END ORDER BY n) END
      INTO _progress, _large FROM unnest(_progress) WITH ORDINALITY o(said, n);
    END IF;
    _change.body := event(
      'progress', _told,
      CASE WHEN _large IS NULL THEN json_build_object('data', _progress)
        ELSE json_build_object('data', _progress, 'large', _large) END
    );
    -- include: note
    -- include: fold-sometimes
  END IF;
  RETURN '[' || array_to_string(_replies, ',') || ']';
END
$body$;
