-- The store remembers the last call of every caller. A call whose reply was lost can be repeated: it gets the recorded reply and is not
-- carried out again.
-- Locks the caller, so that a call and its repetition run one after the other. Returns the number of its last call. This is the first
-- lock of every verb that takes it: callers, then sessions, then jobs in the order of their ids, then names (acquire.sql). Rows
-- locked after that are taken only if no other transaction holds them.
-- Verbs read the row of their caller by themselves, because calling a function costs as much as a statement.
-- Called by: add.sql, claim.sql, settle.sql.
-- REMEMBERED_MS = 600000: a producer may repeat a call for ten minutes.
CREATE FUNCTION enter_call(_queue int, _caller text) RETURNS bigint LANGUAGE plpgsql AS $body$
DECLARE
  _last bigint;
BEGIN
  LOOP
    SELECT seq INTO _last FROM callers WHERE queue = _queue AND id = _caller FOR UPDATE;
    IF FOUND THEN RETURN _last; END IF;
    INSERT INTO callers (queue, id, seq, used_at, look_at) VALUES (_queue, _caller, 0, clock_ms(), clock_ms() + 600000)
    ON CONFLICT DO NOTHING;
  END LOOP;
END
$body$;
