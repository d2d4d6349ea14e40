-- Deletes the entries of deduplication ids; with _owner only those that this job owns. Returns how many of them counted.
-- Called by: control.ts.
CREATE FUNCTION forget_entries(_name text, _ids text[], _owner text) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _queue int := (SELECT queue FROM queues WHERE name = _name);
  _count bigint;
BEGIN
  PERFORM FROM (SELECT DISTINCT id COLLATE "C" AS id FROM unnest(_ids) id ORDER BY 1) o,
    LATERAL (SELECT FROM dedup d WHERE d.queue = _queue AND d.id = o.id FOR UPDATE) d;
  SELECT count(DISTINCT id) INTO _count FROM unnest(_ids) id, entry_owner(_queue, floor(clock_ms())::bigint, id) job
    WHERE job IS NOT NULL AND (_owner IS NULL OR job = _owner);
  DELETE FROM dedup WHERE queue = _queue AND id = ANY (_ids) AND (_owner IS NULL OR job = _owner);
  RETURN _count;
END
$body$;
