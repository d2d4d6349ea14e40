-- Writes messages that take removed parents from their children, and remove the children that have no other parent. The caller deletes the
-- links after this.
-- Called by: clear-lists.sql, remove-jobs.sql.
CREATE FUNCTION send_to_children(_queue int, _parents text[]) RETURNS void LANGUAGE plpgsql AS $body$
BEGIN
  INSERT INTO outbox (queue, to_queue, body)
  SELECT _queue, q.name, json_build_object('kind', 'part', 'id', l.child, 'parent', l.parent, 'remove', true)::text
  FROM unnest(_parents) p(id), LATERAL (SELECT * FROM links WHERE queue = _queue AND parent = p.id OFFSET 0) l,
    LATERAL (SELECT name FROM queues WHERE queue = l.child_queue OFFSET 0) q;
  IF FOUND THEN PERFORM set_config('holdfast.sent', '1', true); END IF;
END
$body$;
