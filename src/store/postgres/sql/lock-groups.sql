-- Locks the rows of groups, in the order of their keys: those of all groups, or that of one. That one is made if there is none.
-- Called by: configure.sql, forget.sql.
CREATE FUNCTION lock_groups(_queue int, _key text, _all boolean) RETURNS void LANGUAGE plpgsql AS $body$
BEGIN
  IF _key IS NOT NULL THEN INSERT INTO groups (queue, key) VALUES (_queue, _key) ON CONFLICT (queue, key) DO NOTHING; END IF;
  PERFORM FROM groups WHERE queue = _queue AND (_all OR key = _key) ORDER BY key FOR UPDATE;
END
$body$;
