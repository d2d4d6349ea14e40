-- Returns the events after a number. Folds the journal first, so that event ids follow the order of commits.
-- Called by: events.ts.
CREATE FUNCTION events_after(
  _name text, _after bigint, _limit bigint, _budget bigint DEFAULT 9007199254740991
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
