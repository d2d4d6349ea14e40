-- Reaps a made-up session, so that the server plans the statements of a real reap while nothing waits for them. Without it, the first
-- call that handed jobs back took 7 ms.
-- Works in queue 0, which never exists, and rolls back. The plans stay with the connection.
-- Called by: sweep.ts.
-- States: 3 active.
-- RAISED.rehearsed = HF003
CREATE FUNCTION rehearse_reap() RETURNS void LANGUAGE plpgsql AS $body$
BEGIN
  INSERT INTO sessions (queue, id, host, pid, name, duration_ms, max_stalls, since, expires_at, look_at)
  VALUES (0, '', '', 0, '', 0, 1, 0, 0, 0);
  INSERT INTO jobs (queue, state, priority, ord, added, added_at, delay, timestamp, fence, id, session, name, opts, data)
  VALUES (0, 3, 0, 0, 0, 0, 0, 0, 0, '', '', '', '', '');
  PERFORM reap(0, clock_ms(), 2, false, false);
  RAISE EXCEPTION SQLSTATE 'HF003';
EXCEPTION WHEN SQLSTATE 'HF003' THEN
  RETURN;
END
$body$;
