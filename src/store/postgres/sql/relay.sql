-- Delivers messages that a queue sends or gets, and deletes them. The reply: Relayed in family.ts.
-- A job that another transaction holds for long keeps its messages waiting, and no others.
-- Called by: family.ts.
-- PATIENCE = 300ms: how long a relay waits for the jobs that other transactions hold.
CREATE FUNCTION relay(_name text, _limit int) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _queue int := (SELECT queue FROM queues WHERE name = _name);
  _newest bigint := (SELECT number FROM outbox WHERE queue = _queue ORDER BY number DESC LIMIT 1);
  _rows tid[] := take_messages(_queue, _name, _limit);
  _free boolean[];
  _taken record;
  _names text[];
  _one record;
  _oldest bigint;
BEGIN
  IF cardinality(_rows) > 0 THEN
    SELECT array_agg(queue) AS queues, array_agg(number) AS numbers, array_agg(at) AS ats, array_agg(body) AS bodies,
      array_agg(to_queue) AS names, array_agg(receiver) AS receivers, array_agg(message ->> 'kind') AS kinds, array_agg(message ->> 'id') AS ids
    INTO _taken
    FROM (
      SELECT at, m.*, m.body::json AS message, q.queue AS receiver FROM unnest(_rows) at, LATERAL (SELECT * FROM outbox WHERE ctid = at OFFSET 0) m
      LEFT JOIN LATERAL (SELECT queue FROM queues WHERE name = m.to_queue OFFSET 0) q ON true ORDER BY m.number
    ) taken;
    _names := _taken.names;
    PERFORM set_config('lock_timeout', '300ms', true), set_config('holdfast.sent', '', true);
    BEGIN
      _free := lock_kin(_taken.receivers, _taken.ids, true);
    EXCEPTION WHEN lock_not_available THEN
      _free := lock_kin(_taken.receivers, _taken.ids, false);
    END;
    FOR _one IN
      -- include: messages-by-target
    LOOP
      IF _one.kind = 'child' THEN
        PERFORM deliver(_one.queue, _one.id, _one.senders, _one.numbers, _one.bodies);
      ELSIF _one.kind = 'part' THEN
        PERFORM part_child(_one.queue, _one.id, senders, parents, removing)
        FROM (
          -- include: parting-runs
        ) runs;
      ELSE
        PERFORM put_letter(_one.name, body::json) FROM unnest(_one.bodies) body;
      END IF;
    END LOOP;
    _rows := ARRAY(SELECT at FROM unnest(_taken.ats, _free) o(at, free) WHERE free IS NOT FALSE);
    DELETE FROM outbox WHERE ctid = ANY (_rows);
  END IF;
  _oldest := (SELECT number FROM outbox WHERE queue = _queue ORDER BY number LIMIT 1);
  RETURN json_build_object(
    'delivered', coalesce(cardinality(_rows), 0), 'more',
    _oldest IS NOT NULL OR (SELECT number FROM outbox WHERE to_queue = _name ORDER BY number LIMIT 1) IS NOT NULL, 'queues',
    ARRAY(SELECT DISTINCT name FROM unnest(_names) name), 'sent', has_sent(), 'newest', _newest, 'oldest', _oldest
  );
END
$body$;
