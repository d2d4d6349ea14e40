-- Locks up to _limit messages that the queue sends, then messages that it gets, the oldest first. It leaves out those that another relay
-- delivers at this moment. Returns where they are.
-- Called by: relay.sql.
CREATE FUNCTION take_messages(_queue int, _name text, _limit int) RETURNS tid[] LANGUAGE plpgsql AS $body$
DECLARE
  _rows tid[] := ARRAY(SELECT ctid FROM outbox WHERE queue = _queue ORDER BY number LIMIT _limit FOR UPDATE SKIP LOCKED);
BEGIN
  IF cardinality(_rows) < _limit THEN
    _rows := _rows || ARRAY(
      SELECT ctid FROM outbox WHERE to_queue = _name AND queue IS DISTINCT FROM _queue
      ORDER BY number LIMIT _limit - cardinality(_rows) FOR UPDATE SKIP LOCKED
    );
  END IF;
  RETURN _rows;
END
$body$;
