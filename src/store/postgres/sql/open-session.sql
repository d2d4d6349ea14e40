-- Opens a session. `sessions.reaped`: 0 = open. 1 = reaped, and locks that died with it are still to be handed back. 2 = kept only
-- because of locks with their own expiry, which need its owner and its maxStalls. A session that holds nothing more is deleted.
-- `sessions.reaped`: 0 = open. 1 = reaped, and locks that died with it are still to be handed back. 2 = kept only because of locks with
-- their own expiry, which need its owner and its maxStalls. A session that holds nothing more is deleted.
-- Called by: session.ts.
-- RAISED.sessionExists = HF002
CREATE FUNCTION open_session(
  _name text, _id text, _host text, _pid float8, _owner text, _instance text, _duration float8,
  _max_stalls float8, _slots float8, _grace float8, _presence int, _vouched int
) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _clock float8 := clock_ms();
BEGIN
  INSERT INTO sessions (
    queue, id, host, pid, name, instance, presence, vouched, duration_ms, max_stalls, slots, grace_ms, since, expires_at, look_at
  )
  VALUES (
    queue_of(_name), _id, _host, _pid, _owner, _instance, _presence, _vouched, _duration, _max_stalls, _slots, _grace,
    floor(_clock), ceil(_clock + _duration), ceil(_clock + _duration)
  )
  ON CONFLICT DO NOTHING;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'Session % was opened before: give every session an id of its own.', _id USING ERRCODE = 'HF002';
  END IF;
  RETURN 'null';
END
$body$;
