-- Grants the locks of the named jobs that wait, in their order.
-- Called by: take.sql.
-- States: -2 grouped, 1 waiting, 3 active.
-- _inline: the long texts of a larger job (bytes) are left out (large-values.sql). The default is for older versions: it leaves out none.
CREATE FUNCTION grant_by_id(
  _queue int, _session text, _seq bigint, _ids text[], _count int, _by text, _timed float8, _clock float8,
  INOUT _change journal, OUT _jobs text, OUT _taken int, OUT _cut boolean, _inline int DEFAULT 2147483647
) RETURNS record LANGUAGE plpgsql AS $body$
DECLARE
  _locked text[];
  _used bigint := 0;
  _bytes bigint;
  _due tid[];
  _one record;
  _chosen text[] := '{}';
  _keys text[] := '{}';
  _members text[] := '{}';
  _plain int;
  _rows text;
  _next text[];
  _body text;
BEGIN
  -- include: lock-jobs
  _ids := ARRAY(SELECT id FROM unnest(_ids) WITH ORDINALITY o(id, n) WHERE id = ANY (_locked) ORDER BY n);
  PERFORM lock_keys_of(_queue, _ids);
  -- include: promote-named
  IF EXISTS (SELECT FROM queues WHERE queue = _queue AND grouped) THEN PERFORM lock_groups_of(_queue, _ids); END IF;
  FOR _one IN
    SELECT j.* FROM unnest(_ids) WITH ORDINALITY o(id, n),
      LATERAL (SELECT id, lock_key, state FROM jobs j WHERE j.queue = _queue AND j.id = o.id AND state + 0 <= 1 OFFSET 0) j
    ORDER BY o.n
  LOOP
    EXIT WHEN cardinality(_chosen) >= _count;
    CONTINUE WHEN _one.id = ANY (_chosen);
    IF _one.state = -2 THEN
      CONTINUE WHEN NOT group_has_place(_queue, _one.lock_key, cardinality(array_positions(_members, _one.lock_key::text)));
      _members := _members || _one.lock_key::text;
    ELSIF _one.lock_key IS NOT NULL THEN
      CONTINUE WHEN _one.lock_key = ANY (_keys)
        OR EXISTS (SELECT FROM jobs WHERE queue = _queue AND lock_key = _one.lock_key AND lock_key IS NOT NULL AND state = 3);
      _keys := _keys || _one.lock_key;
    END IF;
    _chosen := _chosen || _one.id;
  END LOOP;
  WITH waiting AS (
    SELECT j.* FROM unnest(_chosen) WITH ORDINALITY o(id, n),
      LATERAL (
        SELECT ctid AS at, octet_length(data) + coalesce(octet_length(progress), 0) AS size FROM jobs j
        WHERE j.queue = _queue AND j.id = o.id AND true OFFSET 0
      ) j
    ORDER BY o.n
  )
  -- include: grant
  IF cardinality(_members) > 0 THEN
    -- include: count-members
  END IF;
END
$body$;
