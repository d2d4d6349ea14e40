-- The fast path of most settles in queues with groups: completed jobs of groups, or plain ones, that stay, and a claim by their own session
-- in a queue that is not paused, limited or capped, where only jobs of groups wait, and no group has a rate or rests. It works as
-- settle-plain.sql does. The places that come free and the turns that are taken are one write to each group.
-- Called by: settle.ts.
CREATE FUNCTION settle_groups(
  _name text, _session text, _seq bigint, _ids text[], _fences bigint[], _texts text[], _count int, _by text, _inline int
) RETURNS text LANGUAGE plpgsql AS $body$
DECLARE
  _clock float8 := clock_ms();
  _now bigint := floor(_clock);
  _many int := cardinality(_ids);
  _queue int;
  -- include: settle-groups-variables
BEGIN
  -- include: enter-fast-settle
  -- include: group-look
  IF _look.fits IS NOT TRUE OR _look.due <= _now THEN
    UPDATE callers SET seq = _seq - 1, reply = NULL WHERE queue = _queue AND id = _session;
    -- include: settle-in-full
  END IF;
  -- include: complete-in-groups
  _minute := _look.minute;
  -- After the jobs: a claim by id waits for groups while it holds jobs.
  IF _look.noted THEN _soon := count_groups(_queue, _count); END IF;
  -- include: lock-ring
  IF _finished < _many OR _ring.rated THEN
    -- The finished jobs are recorded here; the general path then finds them done.
    -- include: note-completed
    IF _groups IS NOT NULL THEN PERFORM note_groups(_queue, _groups, NULL); END IF;
    UPDATE callers SET seq = _seq - 1, reply = NULL WHERE queue = _queue AND id = _session;
    -- include: settle-in-full
  END IF;
  IF _ring.near THEN
    _room := free_places(_queue, _groups);
    _groups := NULL;
    -- include: lock-ring
  END IF;
  _change := ROW (
    _queue, 0, 0, 0, 0, -_many, _many, 0, _many, _many, event('completed', _ids, json_build_object('returnvalue', _texts)), _minute,
    _many, 0, NULL
  )::journal;
  -- include: deal-rings
  -- include: note
  -- include: fold-sometimes
  RETURN '{"results":"' || repeat('d', _many) || '","room":' || _room || ',"grouped":true,"plain":true,"claimed":'
    || claim_reply(_jobs, true, false, 0, _look.due, _now, _look.waiting <= _all, _cut, _look.undone) || '}';
END
$body$;
