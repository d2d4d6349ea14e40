-- Links the children of a call to their parents. Locks the parents, and the jobs that existed before. Raises an error if a parent does not
-- exist, or an existing child has another living parent.
-- Called by: put-family.sql.
-- MARK.parent = 4
CREATE FUNCTION link_family(
  _numbers int[], _ids text[], _chosen text[], _made boolean[], _extras text[], _shares boolean[]
) RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
  _pairs record;
  _known record;
BEGIN
  SELECT array_agg(o.n) AS ns, array_agg(coalesce(q.queue, 0)) AS queues, array_agg(p ->> 'id') AS ids INTO _pairs
  FROM unnest(_extras) WITH ORDINALITY o(extra, n), json_array_elements(o.extra::json -> 'p') p
  LEFT JOIN LATERAL (SELECT queue FROM queues WHERE name = p ->> 'queue' OFFSET 0) q ON true;
  SELECT coalesce(array_agg(n), '{}') AS ns, coalesce(array_agg(_numbers[n]), '{}') AS queues, coalesce(array_agg(_chosen[n]), '{}') AS ids
  INTO _known FROM generate_subscripts(_made, 1) n WHERE NOT _made[n];
  PERFORM relate(_numbers || array_remove(_pairs.queues, 0));
  PERFORM lock_kin(_known.queues || _pairs.queues, _known.ids || _pairs.ids, true);
  PERFORM refuse_family(_numbers, _ids, _chosen, _made, _extras, _shares, _pairs.ns, _pairs.queues, _pairs.ids);
  IF _pairs.ns IS NULL THEN RETURN; END IF;
  -- The locks are held now, so all messages that these jobs sent before have smaller numbers.
  WITH made AS (
    -- A link of an earlier job with this id waits for the new one.
    INSERT INTO links (queue, parent, child_queue, child, since, sent)
    SELECT queue, parent, child_queue, child, number, number
    FROM (
      SELECT o.queue, o.parent, _numbers[o.n] AS child_queue, _chosen[o.n] AS child, nextval('messages') AS number
      FROM (SELECT DISTINCT n, queue, parent FROM unnest(_pairs.ns, _pairs.queues, _pairs.ids) u(n, queue, parent)) o WHERE _made[o.n]
    ) l
    ON CONFLICT (queue, parent, child_queue, child) DO UPDATE SET since = excluded.since, sent = excluded.sent
    RETURNING queue, parent, xmax = 0 AS fresh
  )
  INSERT INTO families (queue, parent, pending) SELECT queue, parent, count(*) FROM made WHERE fresh GROUP BY queue, parent
  ON CONFLICT (queue, parent) DO UPDATE SET pending = families.pending + excluded.pending;
  PERFORM adopt_child(_numbers[n], _chosen[n], _extras[n]::jsonb -> 'p') FROM unnest(_known.ns) n WHERE _extras[n]::json -> 'p' IS NOT NULL;
  UPDATE jobs SET marks = marks | 4
  FROM (SELECT DISTINCT queue, id FROM unnest(_pairs.queues, _pairs.ids) o(queue, id)) o,
    LATERAL (SELECT ctid AS at FROM jobs j WHERE j.queue = o.queue AND j.id = o.id AND j.marks & 4 = 0 OFFSET 0) j
  WHERE jobs.ctid = j.at;
END
$body$;
