-- Callers: the store remembers the last call of each.

-- name: enter_call
-- The store remembers the last call of every caller. A call whose reply was lost can be repeated: it gets the recorded reply and is not
-- carried out again.
-- Locks the caller, so that a call and its repetition run one after the other. Returns the number of its last call. This is the first
-- lock of every verb that takes it: callers, then sessions, then jobs in the order of their ids, then names (acquire). Rows
-- locked after that are taken only if no other transaction holds them.
-- Verbs read the row of their caller by themselves, because calling a function costs as much as a statement.
-- Called by: add, claim, settle.
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

-- name: refuse_straggler
-- Refuses a call that arrived after a later call of its caller.
-- Called by: add, settle.
-- RAISED.straggler = HF001
CREATE FUNCTION refuse_straggler(_caller text, _seq bigint, _last bigint) RETURNS void LANGUAGE plpgsql AS $body$
BEGIN
  RAISE EXCEPTION 'Call % of % came after its call %: number calls upwards.', _seq, _caller, _last USING ERRCODE = 'HF001';
END
$body$;

-- name: prune_callers
-- Deletes callers that were not used for long, and moves the others on. Returns whether there may be more of them. A worker may repeat
-- its last call for as long as its session is open.
-- Called by: upkeep.
-- PRUNED_AT_ONCE = 500: how many callers one call checks for their age.
-- REMEMBERED_MS = 600000: A producer may repeat a call for ten minutes.
CREATE FUNCTION prune_callers(_now bigint) RETURNS boolean LANGUAGE plpgsql AS $body$
DECLARE
  _due tid[] := ARRAY(SELECT ctid FROM callers WHERE look_at <= _now ORDER BY look_at LIMIT 500 FOR UPDATE SKIP LOCKED);
BEGIN
  DELETE FROM callers c
  WHERE c.ctid = ANY (_due) AND c.used_at < _now - 600000
    AND NOT EXISTS (SELECT FROM sessions s WHERE s.queue = c.queue AND s.id = c.id);
  UPDATE callers SET look_at = greatest(used_at + 600000 + 1, _now + 1) WHERE ctid = ANY (_due) AND used_at >= _now - 600000;
  UPDATE callers SET look_at = _now + 600000 WHERE ctid = ANY (_due) AND look_at <= _now;
  RETURN cardinality(_due) = 500;
END
$body$;
