-- Locks the rows of groups, in the order of their keys: those of all groups, or that of one. That one is made if there is none. Until the
-- commit, no other transaction makes rows of groups.
-- Called by: configure.sql, forget.sql.
CREATE FUNCTION lock_groups(_queue int, _key text, _all boolean) RETURNS void LANGUAGE plpgsql AS $body$
BEGIN
  PERFORM pg_advisory_xact_lock(groups_lock(_queue));
  -- A row that is there is locked by this too: a sweep may remove it between two statements.
  IF _key IS NOT NULL THEN
    INSERT INTO groups (queue, key) VALUES (_queue, _key) ON CONFLICT (queue, key) DO UPDATE SET paused = groups.paused;
  END IF;
  IF _all THEN PERFORM FROM groups WHERE queue = _queue ORDER BY key FOR UPDATE; END IF;
END
$body$;
