-- Grants the locks of a claim: delayed jobs that are due become waiting, and waiting jobs get their locks, in order or by their ids.
-- Claims call it under the locks of their caller and session. It skips rows that other transactions hold, except rows that are
-- named by id.
-- `_in_line`: no job was put to the front and none has a priority, so that one stretch is enough. `_used`: bytes of the jobs granted
-- before.
-- `_cut`: it stopped because the reply is full.
-- Called by: claim-plain.sql, settle-children.sql, settle-plain.sql, take.sql.
-- States: 1 waiting.
-- _inline: the long texts of a larger job (bytes) are left out (large-values.sql). The default is for older versions: it leaves out none.
CREATE FUNCTION grant_locks(
  _queue int, _session text, _seq bigint, _by text, _timed float8, _clock float8, _head bigint, _room int,
  _in_line boolean, INOUT _change journal, INOUT _jobs text, OUT _taken int, OUT _bytes bigint,
  OUT _cut boolean, _inline int DEFAULT 2147483647, _used bigint DEFAULT 0, _whole boolean DEFAULT false
) RETURNS record LANGUAGE plpgsql AS $body$
DECLARE
  -- include: dead-variables
  _most int := _room;
  _plain int;
  _rows text;
  _next text[];
  _body text;
BEGIN
  IF _in_line THEN
    WITH waiting AS (
      SELECT ctid AS at, octet_length(data) + coalesce(octet_length(progress), 0) AS size FROM jobs
      WHERE queue = _queue AND state = 1 AND priority = 0 AND ord >= _head AND (xmax = 0 OR untouched(xmax))
      ORDER BY ord LIMIT _room FOR UPDATE SKIP LOCKED
    )
    -- include: grant
  ELSE
    -- include: skip-dead
    WITH waiting AS (
      SELECT * FROM (
        -- include: waiting-in-order
      ) s LIMIT _room
    )
    -- include: grant
  END IF;
END
$body$;
