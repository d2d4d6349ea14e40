-- Raises an error with the statuses of all jobs of a call if one of them is refused: a parent does not exist (or comes later in the call), or a
-- child that exists has another living parent. _ns, _queues, _parents: the jobs with parents, and their parents. The caller holds the locks.
-- Called by: link-family.sql.
-- RAISED.refusedFamily = HF004
-- COLLISION = 40001: the caller repeats the call.
CREATE FUNCTION refuse_family(
  _numbers int[], _ids text[], _chosen text[], _made boolean[], _extras text[], _shares boolean[], _ns bigint[], _queues int[],
  _parents text[]
) RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
  _keys text[] := ARRAY(SELECT queue || ' ' || id FROM unnest(_numbers, _chosen) WITH ORDINALITY o(queue, id, n) ORDER BY n);
  _orphans bigint[];
  _others bigint[];
BEGIN
  _orphans := ARRAY(
    SELECT child FROM (
      SELECT queue, parent, array_agg(n) AS children FROM unnest(_ns, _queues, _parents) o(n, queue, parent) GROUP BY queue, parent
    ) p, LATERAL (SELECT array_position(_keys, queue || ' ' || parent) AS place) a, unnest(children) child
    WHERE place > child AND _made[place] OR NOT EXISTS (SELECT FROM jobs j WHERE j.queue = p.queue AND j.id = p.parent)
  );
  IF EXISTS (
    SELECT FROM generate_subscripts(_made, 1) n
    WHERE NOT _made[n] AND NOT EXISTS (SELECT FROM jobs j WHERE j.queue = _numbers[n] AND j.id = _chosen[n])
  ) THEN RAISE EXCEPTION 'A job of the family was removed meanwhile.' USING ERRCODE = '40001'; END IF;
  _others := ARRAY(
    SELECT n FROM generate_subscripts(_made, 1) n,
      LATERAL (SELECT extras FROM jobs WHERE queue = _numbers[n] AND id = _chosen[n] OFFSET 0) j,
      jsonb_array_elements(j.extras::jsonb -> 'p') p, LATERAL (SELECT queue FROM queues WHERE name = p ->> 'queue' OFFSET 0) q
    WHERE NOT _made[n] AND _shares[n] IS NOT TRUE AND _extras[n]::json -> 'p' IS NOT NULL
      AND NOT EXISTS (
        SELECT FROM json_array_elements(_extras[n]::json -> 'p') g WHERE g ->> 'queue' = p ->> 'queue' AND g ->> 'id' = p ->> 'id'
      )
      AND EXISTS (SELECT FROM jobs k WHERE k.queue = q.queue AND k.id = p ->> 'id')
  );
  IF cardinality(_orphans || _others) = 0 THEN RETURN; END IF;
  RAISE EXCEPTION USING ERRCODE = 'HF004', MESSAGE = (
    SELECT json_build_object(
      'ids', array_agg(coalesce(_ids[n], '') ORDER BY n), 'statuses',
      array_agg(CASE WHEN n = ANY (_orphans) THEN 'noParent' WHEN n = ANY (_others) THEN 'otherParent' ELSE 'refused' END ORDER BY n)
    )::text
    FROM generate_subscripts(_made, 1) n
  );
END
$body$;
