-- Renews one session where the fast path is not available. _kinds: see tell-revocations.sql.
-- Called by: session.ts.
CREATE FUNCTION renew_one(_name text, _id text, _acked bigint, _slots float8, _kinds boolean DEFAULT false) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _queue int;
  _revoked boolean;
BEGIN
  UPDATE sessions s SET
    -- include: renewed
    slots = coalesce(_slots, s.slots)
  WHERE s.queue = (SELECT queue FROM queues WHERE name = _name) AND s.id = _id AND s.reaped + 0 = 0
  RETURNING s.queue, EXISTS (SELECT FROM revocations v WHERE v.queue = s.queue AND v.session = s.id) INTO _queue, _revoked;
  IF _revoked THEN RETURN tell_revocations(_queue, _id, _acked, _kinds); END IF;
  RETURN CASE WHEN FOUND THEN '[]' ELSE 'null' END;
END
$body$;
