-- The same as settle-plain.sql for queues that have children of other jobs: a child that completes writes the message to its parents in the same
-- statement.
-- Called by: settle.ts.
CREATE FUNCTION settle_children(
  _name text, _session text, _seq bigint, _ids text[], _fences bigint[], _texts text[], _count int, _by text, _inline int
) RETURNS text LANGUAGE plpgsql AS $body$
DECLARE
  _sent boolean;
  -- include: fast-settle-variables
BEGIN
  -- include: enter-fast-settle
  -- include: settle-look
  -- include: complete-children
  -- include: take-after-settle
  RETURN '{"results":"' || repeat('d', _many) || '","room":false,"plain":true' || CASE WHEN _sent THEN ',"sent":true' ELSE '' END
    || ',"claimed":' || claim_reply(_rows, true, false, 0, _due, _now, _left <= _taken, _more, _undone) || '}';
END
$body$;
