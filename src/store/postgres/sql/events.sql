-- Events: their log, and its trimming.

-- name: event
-- Returns a group of events of one name: [name, job ids, fields]. A field is an array with a value for each job, or one value for all.
-- Called by: many.
CREATE FUNCTION event(_name text, _ids text[], _fields json DEFAULT NULL) RETURNS text LANGUAGE sql STABLE AS $body$
SELECT json_build_array(_name, _ids, _fields)::text
$body$;

-- name: events_after
-- Returns the events after a number. Folds the journal first, so that event ids follow the order of commits.
-- Called by: events.ts.
CREATE FUNCTION events_after(
  _name text, _after bigint, _limit bigint, _budget bigint
) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _row queues;
  _from bigint;
  _rows text;
BEGIN
  SELECT * INTO _row FROM queues WHERE name = _name;
  IF NOT FOUND THEN RETURN '{"from":0,"last":0,"rows":[]}'; END IF;
  IF EXISTS (SELECT FROM journal WHERE journal.queue = _row.queue AND journal.number >= _row.journal_from) THEN
    PERFORM FROM queues WHERE queue = _row.queue FOR NO KEY UPDATE;
    PERFORM fold(_row.queue);
    SELECT * INTO _row FROM queues WHERE queue = _row.queue;
  END IF;
  IF _after IS NULL THEN RETURN json_build_object('from', _row.last_event, 'last', _row.last_event, 'rows', '[]'::json); END IF;
  _from := least(greatest(_after, _row.first_event - 1), _row.last_event);
  -- Ids have no gaps: the rows that hold the next ones are known by their ends.
  SELECT string_agg('[' || first || ',[' || body || ']]', ',') INTO _rows
  FROM (
    SELECT *, octet_length(body) AS size, sum(octet_length(body)) OVER (ROWS UNBOUNDED PRECEDING) AS upto
    FROM (
      SELECT first, body FROM events
      WHERE queue = _row.queue AND first <= _from + _limit
        AND first >= (SELECT coalesce(max(first), 0) FROM events WHERE queue = _row.queue AND first <= _from + 1)
      ORDER BY first
    ) e
  ) e
  WHERE upto <= _budget OR upto = size;
  RETURN '{"from":' || _from || ',"last":' || _row.last_event || ',"rows":[' || coalesce(_rows, '') || ']}';
END
$body$;

-- name: light_body
-- Returns the events of a row without their long values.
-- Called by: trim_bytes.
-- SHORT_VALUE_BYTES = 256
CREATE FUNCTION light_body(_body text) RETURNS text LANGUAGE plpgsql AS $body$
BEGIN
  RETURN (
    SELECT string_agg(
      CASE WHEN json_typeof(g->2->field) = 'array' THEN json_build_array(
        g->0, g->1,
        (
          SELECT json_build_object(
            field, json_agg(CASE WHEN octet_length(v) <= 256 THEN v END ORDER BY n), 'large',
            json_agg(CASE WHEN v IS NULL OR octet_length(v) > 256 THEN 1 END ORDER BY n)
          )
          FROM json_array_elements_text(g->2->field) WITH ORDINALITY e(v, n)
        )
      )::text ELSE g::text END, ','
      ORDER BY i
    )
    FROM (
      SELECT g, i, CASE g->>0 WHEN 'completed' THEN 'returnvalue' WHEN 'progress' THEN 'data' END AS field
      FROM json_array_elements(('[' || _body || ']')::json) WITH ORDINALITY t(g, i)
    ) groups
  );
END
$body$;

-- name: trim_bytes
-- Trims the log of events to _keep bytes: the oldest values first, then the oldest events. The newest event stays unchanged.
-- Called by: fold.
-- LONG = 512: twice SHORT_VALUE_BYTES. A row with fewer bytes per event has hardly a long value.
CREATE FUNCTION trim_bytes(_queue int, _keep bigint) RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
  _newest bigint := (SELECT last_event FROM queues WHERE queue = _queue);
  _last bigint;
  _row record;
  _light text;
  _over bigint := (SELECT sum(octet_length(body)) - _keep FROM events WHERE queue = _queue);
BEGIN
  IF _over IS NULL OR _over <= 0 THEN RETURN; END IF;
  FOR _row IN
    SELECT first, body FROM events WHERE queue = _queue AND last < _newest AND octet_length(body) > (last - first + 1) * 512
    ORDER BY first
  LOOP
    _light := light_body(_row.body);
    UPDATE events SET body = _light WHERE queue = _queue AND first = _row.first;
    _over := _over - octet_length(_row.body) + octet_length(_light);
    IF _over <= 0 THEN RETURN; END IF;
  END LOOP;
  SELECT last INTO _last FROM (
    SELECT last, sum(octet_length(body)) OVER (ROWS UNBOUNDED PRECEDING) AS upto
    FROM (SELECT last, body FROM events WHERE queue = _queue ORDER BY first DESC) e
  ) e
  WHERE upto > _keep LIMIT 1;
  IF FOUND THEN PERFORM trim_log(_queue, greatest(1, _newest - _last)); END IF;
END
$body$;

-- name: trim_events
-- Trims the log of events to a number of events. Returns how many it removed.
-- Called by: control.ts.
CREATE FUNCTION trim_events(_name text, _keep float8) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _queue int;
BEGIN
  SELECT queue INTO _queue FROM queues WHERE name = _name FOR NO KEY UPDATE;
  IF NOT FOUND THEN RETURN 0; END IF;
  PERFORM fold(_queue);
  RETURN trim_log(_queue, _keep);
END
$body$;

-- name: trim_log
-- Returns how many events were trimmed. The row that holds the first event that stays is kept whole; readers start inside it.
-- Called by: fold, forget, trim_bytes, trim_events.
CREATE FUNCTION trim_log(_queue int, _keep double precision) RETURNS bigint LANGUAGE plpgsql AS $body$
DECLARE
  _before bigint;
  _first bigint;
BEGIN
  SELECT first_event, least(last_event + 1, greatest(first_event, last_event - _keep + 1)) INTO _before, _first FROM queues
  WHERE queue = _queue;
  IF _first > _before THEN
    DELETE FROM events WHERE queue = _queue AND first < _first AND last < _first;
    UPDATE queues SET first_event = _first WHERE queue = _queue;
  END IF;
  RETURN _first - _before;
END
$body$;
