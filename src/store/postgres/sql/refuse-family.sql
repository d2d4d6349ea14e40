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
  _orphans bigint[];
  _others bigint[];
  _statuses text[] := array_fill('refused'::text, ARRAY[cardinality(_made)]);
  _n bigint;
BEGIN
  _orphans := ARRAY(
    SELECT child FROM (
      SELECT queue, id, min(place) AS place, array_agg(n) FILTER (WHERE n IS NOT NULL) AS children
      FROM (
        SELECT queue, id, place, NULL AS n FROM unnest(_numbers, _chosen) WITH ORDINALITY o(queue, id, place)
        UNION ALL
        SELECT queue, id, NULL, n FROM unnest(_ns, _queues, _parents) o(n, queue, id)
      ) o
      GROUP BY queue, id
    ) p, unnest(children) child
    WHERE place > child AND _made[place] OR NOT EXISTS (SELECT FROM jobs j WHERE j.queue = p.queue AND j.id = p.id OFFSET 0)
  );
  IF EXISTS (
    SELECT FROM generate_subscripts(_made, 1) n
    WHERE NOT _made[n] AND NOT EXISTS (SELECT FROM jobs j WHERE j.queue = _numbers[n] AND j.id = _chosen[n] OFFSET 0)
  ) THEN RAISE EXCEPTION 'A job of the family was removed meanwhile.' USING ERRCODE = '40001'; END IF;
  _others := ARRAY(
    SELECT n FROM generate_subscripts(_made, 1) n,
      LATERAL (SELECT extras FROM jobs WHERE queue = _numbers[n] AND id = _chosen[n] OFFSET 0) j,
      LATERAL (
        SELECT p ->> 'queue' AS queue, p ->> 'id' AS id FROM json_array_elements(j.extras::json -> 'p') p
        EXCEPT
        SELECT p ->> 'queue', p ->> 'id' FROM json_array_elements(_extras[n]::json -> 'p') p
      ) p, LATERAL (SELECT queue FROM queues WHERE name = p.queue OFFSET 0) q
    WHERE NOT _made[n] AND _shares[n] IS NOT TRUE AND _extras[n]::json -> 'p' IS NOT NULL
      AND EXISTS (SELECT FROM jobs k WHERE k.queue = q.queue AND k.id = p.id OFFSET 0)
  );
  IF cardinality(_orphans || _others) = 0 THEN RETURN; END IF;
  FOREACH _n IN ARRAY _others LOOP
    _statuses[_n] := 'otherParent';
  END LOOP;
  FOREACH _n IN ARRAY _orphans LOOP
    _statuses[_n] := 'noParent';
  END LOOP;
  RAISE EXCEPTION USING ERRCODE = 'HF004', MESSAGE = json_build_object(
    'ids', ARRAY(SELECT coalesce(_ids[n], '') FROM generate_subscripts(_made, 1) n ORDER BY n), 'statuses', _statuses
  )::text;
END
$body$;
