-- Returns the links of a job in some states, after the child _after_child of the queue _after_queue, and how many links of each state the job
-- has. The page is cut at _limit links, or at _budget bytes of texts.
-- Called by: family.ts.
CREATE FUNCTION children_of(
  _name text, _job text, _states text[], _after_queue int, _after_child text, _limit int, _budget bigint
) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _queue int := (SELECT queue FROM queues WHERE name = _name);
  _counts json;
  _rows tid[];
  _links record;
BEGIN
  SELECT json_build_object('pending', pending, 'processed', processed, 'failed', failed, 'ignored', ignored) INTO _counts
  FROM families WHERE queue = _queue AND parent = _job;
  IF _states = '{pending}' THEN
    -- These have an index of their own.
    _rows := ARRAY(
      SELECT ctid FROM links
      WHERE queue = _queue AND parent = _job AND state = 'pending'
        AND (child_queue, child) > (coalesce(_after_queue, -1), coalesce(_after_child, ''))
      ORDER BY child_queue, child LIMIT _limit + 1
    );
  ELSE
    _rows := ARRAY(
      SELECT ctid FROM links
      WHERE queue = _queue AND parent = _job AND state = ANY (_states)
        AND (child_queue, child) > (coalesce(_after_queue, -1), coalesce(_after_child, ''))
      ORDER BY child_queue, child LIMIT _limit + 1
    );
  END IF;
  SELECT json_agg(json_build_array(name, child, state, text, child_queue) ORDER BY n) FILTER (WHERE fits) AS page, bool_or(NOT fits) AS more
  INTO _links
  FROM (
    SELECT n, l.*, q.name, n <= _limit AND (n = 1 OR sum(coalesce(octet_length(l.text), 0)) OVER (ORDER BY n) <= _budget) AS fits
    FROM unnest(_rows) WITH ORDINALITY r(at, n), LATERAL (SELECT * FROM links WHERE ctid = at OFFSET 0) l,
      LATERAL (SELECT name FROM queues WHERE queue = l.child_queue OFFSET 0) q
  ) found;
  RETURN json_build_object('counts', _counts, 'links', coalesce(_links.page, '[]'), 'more', coalesce(_links.more, false));
END
$body$;
