-- Trims the log of events to _keep bytes: the oldest values first, then the oldest events. The newest event stays unchanged.
-- Called by: fold.sql.
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
