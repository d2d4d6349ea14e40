-- Locks the parents in the queue whose pending children are all in _rows, if no other transaction holds them, and returns where they are. A
-- parent that another transaction holds is released by the messages of its children instead.
-- Called by: clear-lists.sql.
-- States: 6 waiting-children.
-- MARK.child = 2
CREATE FUNCTION last_parents(_queue int, _rows tid[]) RETURNS tid[] LANGUAGE plpgsql AS $body$
DECLARE
  _name text := (SELECT name FROM queues WHERE queue = _queue);
  _found text[];
  _counts int[];
  _locked tid[];
BEGIN
  SELECT array_agg(parent), array_agg(children) INTO _found, _counts
  FROM (
    SELECT p ->> 'id' AS parent, count(*)::int AS children
    FROM unnest(_rows) at, LATERAL (SELECT id, marks, extras FROM jobs WHERE ctid = at OFFSET 0) j,
      json_array_elements(CASE WHEN j.marks & 2 > 0 THEN j.extras::json -> 'p' END) p,
      LATERAL (
        SELECT FROM links
        WHERE queue = _queue AND parent = p ->> 'id' AND child_queue = _queue AND child = j.id AND state = 'pending' OFFSET 0
      ) l
    WHERE p ->> 'queue' = _name GROUP BY p ->> 'id'
  ) waiting;
  SELECT array_agg(at), array_agg(children) INTO _locked, _counts
  FROM (
    SELECT j.at, o.children FROM unnest(_found, _counts) o(id, children),
      LATERAL (
        SELECT ctid AS at FROM jobs j
        WHERE j.queue = _queue AND j.id = o.id AND j.state + 0 = 6 AND j.ctid <> ALL (_rows) AND (xmax = 0 OR untouched(xmax))
        FOR UPDATE SKIP LOCKED
      ) j
  ) locked;
  -- Read under the locks.
  RETURN ARRAY(
    SELECT at FROM unnest(_locked, _counts) o(at, children), LATERAL (SELECT id FROM jobs WHERE ctid = at OFFSET 0) j,
      LATERAL (SELECT pending FROM families WHERE queue = _queue AND parent = j.id OFFSET 0) f
    WHERE f.pending = o.children
  );
END
$body$;
