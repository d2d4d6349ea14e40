-- Parts parents from one pending child. A message takes the parent from the child.
-- Called by: change.ts.
CREATE FUNCTION unlink_jobs(_name text, _ids text[], _child_queue text, _child text) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _queue int := (SELECT queue FROM queues WHERE name = _name);
  _from int := (SELECT queue FROM queues WHERE name = _child_queue);
  _locked text[];
  _statuses text[] := '{}';
  _id text;
  _left int;
BEGIN
  -- include: lock-jobs
  FOREACH _id IN ARRAY _ids LOOP
    IF _id <> ALL (_locked) THEN
      _statuses := _statuses || 'missing'::text;
      CONTINUE;
    END IF;
    DELETE FROM links WHERE queue = _queue AND parent = _id AND child_queue = _from AND child = _child AND state = 'pending';
    _statuses := _statuses || CASE WHEN FOUND THEN 'done' ELSE 'state' END;
    CONTINUE WHEN NOT FOUND;
    UPDATE families SET pending = pending - 1 WHERE queue = _queue AND parent = _id RETURNING pending INTO _left;
    INSERT INTO outbox (queue, to_queue, body)
    VALUES (_queue, _child_queue, json_build_object('kind', 'part', 'id', _child, 'parent', _id, 'remove', false)::text);
    PERFORM set_config('holdfast.sent', '1', true);
    IF _left = 0 THEN PERFORM release_parent(_queue, _id); END IF;
  END LOOP;
  RETURN to_json(_statuses);
END
$body$;
