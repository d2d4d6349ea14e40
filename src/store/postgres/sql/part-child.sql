-- Takes parents (the jobs _ids of the queues _from) from a child, unless they are linked (again). _removing: the parents were removed, so the
-- child goes too if it has no other parent and is not locked, with its own children. The caller holds the lock of the child.
-- Called by: relay.sql.
-- States: 3 active.
-- MARK.child = 2
-- MARK.next = 16
CREATE FUNCTION part_child(_queue int, _id text, _from int[], _ids text[], _removing boolean) RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
  _job record;
  _parted jsonb;
  _parents jsonb;
BEGIN
  SELECT state, marks, extras::jsonb AS extras INTO _job FROM jobs WHERE queue = _queue AND id = _id;
  IF NOT FOUND THEN RETURN; END IF;
  SELECT jsonb_object_agg(jsonb_build_array(q.name, o.parent)::text, true) INTO _parted
  FROM unnest(_from, _ids) o(sender, parent), LATERAL (SELECT name FROM queues WHERE queue = o.sender OFFSET 0) q
  WHERE NOT EXISTS (
    SELECT FROM links l WHERE l.queue = o.sender AND l.parent = o.parent AND l.child_queue = _queue AND l.child = _id OFFSET 0
  );
  IF _parted IS NULL THEN RETURN; END IF;
  IF _job.marks & 2 > 0 THEN
    SELECT jsonb_agg(p ORDER BY n) INTO _parents FROM jsonb_array_elements(_job.extras -> 'p') WITH ORDINALITY o(p, n)
    WHERE NOT _parted ? jsonb_build_array(p -> 'queue', p -> 'id')::text;
    UPDATE jobs
    SET marks = CASE WHEN _parents IS NULL THEN marks & ~2 ELSE marks END,
      extras = NULLIF((CASE WHEN _parents IS NULL THEN _job.extras - 'p' ELSE jsonb_set(_job.extras, '{p}', _parents) END)::text, '{}')
    WHERE queue = _queue AND id = _id;
  END IF;
  IF _removing AND _parents IS NULL AND _job.state + 0 <> 3 AND _job.marks & 16 = 0 THEN
    PERFORM remove_jobs((SELECT name FROM queues WHERE queue = _queue), ARRAY[_id], true);
  END IF;
END
$body$;
