-- Applies notes of groups to the rows of the groups that no other transaction holds: places that came free, and groups that come into line.
-- They get the number of the last turn. _soon: notes are left. A group without a row gets one, if no other transaction makes rows: an insertion
-- would wait for another one of the same row.
-- Called by: choose-turns.sql, lock-groups-of.sql, settle-groups.sql, upkeep.sql.
-- NOTES_AT_ONCE = 100: how many notes one call applies, beside two for each job that a claim may take: a new group takes about 50 µs.
CREATE FUNCTION count_groups(_queue int, OUT _soon boolean, _room int DEFAULT 0) RETURNS boolean LANGUAGE plpgsql AS $body$
DECLARE
  _noted record;
  _new text[];
  _locked text[];
  _most float8;
  _last bigint;
BEGIN
  SELECT array_agg(number) AS numbers, array_agg(DISTINCT key) AS keys INTO _noted
  FROM (SELECT number, key FROM group_notes WHERE queue = _queue ORDER BY number LIMIT 100 + 2 * _room) noted;
  _soon := false;
  IF _noted.numbers IS NULL THEN RETURN; END IF;
  _new := ARRAY(
    SELECT k.key FROM unnest(_noted.keys) k(key) WHERE NOT EXISTS (SELECT FROM groups g WHERE g.queue = _queue AND g.key = k.key)
  );
  IF cardinality(_new) > 0 AND pg_try_advisory_xact_lock(groups_lock(_queue)) THEN
    INSERT INTO groups (queue, key) SELECT _queue, key FROM unnest(_new) key ON CONFLICT (queue, key) DO NOTHING;
  END IF;
  _locked := ARRAY(
    SELECT g.key FROM unnest(_noted.keys) o(key),
      LATERAL (
        SELECT key FROM groups g WHERE g.queue = _queue AND g.key = o.key AND (xmax = 0 OR untouched(xmax)) FOR UPDATE SKIP LOCKED
      ) g
  );
  -- After the locks, also that of new rows: a change of the limits holds them too.
  SELECT group_max INTO _most FROM queues WHERE queue = _queue;
  SELECT last_turn INTO _last FROM groups WHERE queue = _queue AND key = '';
  WITH gone AS (
    DELETE FROM group_notes WHERE queue = _queue AND number = ANY (_noted.numbers) AND key = ANY (_locked)
    RETURNING key, freed, entered
  ), sums AS (SELECT key, sum(freed) AS freed, bool_or(entered) AS entered FROM gone GROUP BY key), o AS MATERIALIZED (
    SELECT s.*, g.at FROM sums s, LATERAL (SELECT ctid AS at FROM groups g WHERE g.queue = _queue AND g.key = s.key OFFSET 0) g
  )
  UPDATE groups g
  SET active = g.active - o.freed, turn = CASE WHEN o.entered THEN coalesce(g.turn, _last, 0) ELSE g.turn END,
    place = group_place(g.paused, g.active - o.freed, g.max_active, _most)
  FROM o WHERE g.ctid = o.at;
  _soon := cardinality(_locked) < cardinality(_noted.keys) OR cardinality(_noted.numbers) = 100 + 2 * _room;
END
$body$;
