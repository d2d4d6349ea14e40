-- The same for queues where jobs with a key wait too. It decides which jobs come first before it locks any row, so that no row is
-- locked in vain.
-- Called by: take.sql.
-- _inline: the long texts of a larger job (bytes) are left out (large-values.sql). The default is for older versions: it leaves out none.
CREATE FUNCTION grant_in_turn(
  _queue int, _session text, _seq bigint, _by text, _timed float8, _clock float8, _head bigint, _room int,
  INOUT _change journal, OUT _jobs text, OUT _taken int, OUT _soon boolean, OUT _bytes bigint,
  OUT _cut boolean, _inline int DEFAULT 2147483647, _whole boolean DEFAULT false
) RETURNS record LANGUAGE plpgsql AS $body$
DECLARE
  -- include: dead-variables
  _first record;
  _chosen record;
  _most int;
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
  _soon := _freed OR _first._soon;
  _most := _chosen.plain;
  WITH waiting AS (
    SELECT at, size FROM (
      -- include: waiting-in-order
      UNION ALL
      -- include: waiting-chosen
    ) merged
    ORDER BY priority, ord LIMIT _room
  )
  -- include: grant
  _soon := _soon OR _taken < _chosen.jobs AND NOT _cut;
END
$body$;
