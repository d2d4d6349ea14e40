-- The same as grant-in-turn.sql for queues with groups: claims take turns between the groups, and the jobs without a group are one more.
-- Called by: take.sql.
-- _keyed: jobs with a key may be claimed. _inline: the long texts of a larger job (bytes) are left out (large-values.sql).
CREATE FUNCTION grant_groups(
  _queue int, _session text, _seq bigint, _by text, _timed float8, _clock float8, _head bigint, _room int,
  INOUT _change journal, OUT _jobs text, OUT _taken int, OUT _soon boolean, OUT _bytes bigint,
  OUT _cut boolean, _inline int, _keyed boolean, _whole boolean DEFAULT false
) RETURNS record LANGUAGE plpgsql AS $body$
DECLARE
  -- include: dead-variables
  _asked int := _room;
  _first record;
  _chosen record;
  _turn record;
  _most int;
  _took int[];
  _used bigint := 0;
  _plain int;
  _rows text;
  _next text[];
  _body text;
BEGIN
  _soon := false;
  -- include: choose-ungrouped
  _turn := choose_turns(_queue, floor(_clock)::bigint, _room, _chosen.jobs);
  _soon := _soon OR _turn._soon;
  _room := _turn._plain;
  IF _room = 0 THEN
    -- Most claims: a statement that also finds other jobs takes longer to set up than to run.
    WITH waiting AS (
      SELECT at, size FROM (
        -- include: waiting-in-groups
      ) s
      ORDER BY round, turn, key
    )
    -- include: grant
  ELSE
    _most := least(_chosen.plain, _room);
    WITH waiting AS (
      SELECT at, size FROM (
        SELECT at, size, row_number() OVER (ORDER BY priority, ord) AS round, _turn._plain_begins AS turn, '' COLLATE "C" AS key FROM (
          SELECT * FROM (
            -- include: waiting-in-order
            UNION ALL
            -- include: waiting-chosen
          ) merged
          ORDER BY priority, ord LIMIT _room
        ) plain
        UNION ALL
        SELECT * FROM (
          -- include: waiting-in-groups
        ) s
      ) merged
      ORDER BY round, turn, key
    )
    -- include: grant
  END IF;
  -- include: end-turns
END
$body$;
