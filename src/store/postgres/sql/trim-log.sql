-- Returns how many events were trimmed. The row that holds the first event that stays is kept whole; readers start inside it.
-- Called by: fold.sql, forget.sql, trim-bytes.sql, trim-events.sql.
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
