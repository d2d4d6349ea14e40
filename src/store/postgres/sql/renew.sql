-- Renews several sessions. _kinds: see tell-revocations.sql.
-- Called by: session.ts.
CREATE FUNCTION renew(
  _names text[], _ids text[], _acked bigint[], _slots float8[], _kinds boolean DEFAULT false
) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _replies text[] := array_fill('null'::text, ARRAY[cardinality(_ids)]);
  _one record;
  _queue int;
  _revoked boolean;
BEGIN
  FOR _one IN
    SELECT q.queue, r.* FROM unnest(_names, _ids, _acked, _slots) WITH ORDINALITY r(name, id, acked, slots, n)
    JOIN queues q USING (name) ORDER BY q.queue, r.id COLLATE "C", r.n
  LOOP
    UPDATE sessions s SET
      -- include: renewed
      slots = coalesce(_one.slots, s.slots)
    WHERE s.queue = _one.queue AND s.id = _one.id AND s.reaped + 0 = 0
    RETURNING s.queue, EXISTS (SELECT FROM revocations v WHERE v.queue = s.queue AND v.session = s.id) INTO _queue, _revoked;
    CONTINUE WHEN NOT FOUND;
    _replies[_one.n] := CASE WHEN _revoked THEN tell_revocations(_queue, _one.id, _one.acked, _kinds) ELSE '[]' END;
  END LOOP;
  RETURN '[' || array_to_string(_replies, ',') || ']';
END
$body$;
