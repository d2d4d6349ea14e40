-- The same as grant-in-turn.sql for queues with groups: claims take turns between the groups, and the jobs without a group are one more.
-- Called by: take.sql.
-- _inline: the long texts of a larger job (bytes) are left out (large-values.sql).
CREATE FUNCTION grant_groups(
  _queue int, _session text, _seq bigint, _by text, _timed float8, _clock float8, _head bigint, _room int,
  INOUT _change journal, OUT _jobs text, OUT _taken int, OUT _soon boolean, OUT _bytes bigint,
  OUT _cut boolean, _inline int, _whole boolean DEFAULT false
) RETURNS record LANGUAGE plpgsql AS $body$
DECLARE
  -- include: dead-variables
  _first record;
  _chosen record;
  _turn record;
  _most int;
  _places int[];
  _used bigint := 0;
  _freed boolean;
  _plain int;
  _rows text;
  _next text[];
  _body text;
BEGIN
  -- include: skip-dead
  _freed := show_freed(_queue, _head_freed, _head_keyed);
  _first := first_of_keys(_queue, _room, _head_keyed);
  -- include: choose-in-turn
  _turn := choose_turns(_queue, floor(_clock)::bigint, _room, _chosen.jobs);
  _soon := _freed OR _first._soon OR _turn._soon;
  _room := _chosen.jobs - _turn._plain;
  _most := least(_chosen.plain, _room);
  -- The places of the turns, by member: _room of jobs without a group come first.
  _places := ARRAY(SELECT place FROM unnest(_turn._order) WITH ORDINALITY o(member, place) ORDER BY member, place);
  WITH waiting AS (
    SELECT at, size FROM (
      SELECT at, size, _places[row_number() OVER (ORDER BY priority, ord)] AS place FROM (
        SELECT * FROM (
          -- include: waiting-in-order
          UNION ALL
          -- include: waiting-chosen
        ) merged
        ORDER BY priority, ord LIMIT _room
      ) plain
      UNION ALL
      -- include: waiting-in-groups
    ) merged
    ORDER BY place
  )
  -- include: grant
  -- include: end-turns
END
$body$;
