-- Puts the jobs of a family into their queues, and links them. All jobs are inserted before any existing one is locked, both in the order of
-- (queue, id): two calls never wait for each other in a circle. Returns the reply of add_family: ids, and which of the jobs are new.
-- Called by: add-family.sql.
-- MARK.parent = 4
CREATE FUNCTION put_family(
  _queues text[], _ids text[], _names text[], _data text[], _opts text[], _priorities int[], _delays float8[], _lifos boolean[],
  _timestamps float8[], _keys text[], _marks smallint[], _extras text[], _shares boolean[]
) RETURNS text LANGUAGE plpgsql AS $body$
DECLARE
  _clock float8 := clock_ms();
  _numbers int[];
  _chosen text[] := array_fill(NULL::text, ARRAY[cardinality(_names)]);
  _made boolean[] := array_fill(true, ARRAY[cardinality(_names)]);
  _change journal;
  _one record;
  _part record;
  _got record;
  _put text[];
BEGIN
  PERFORM queue_of(name) FROM (SELECT DISTINCT name FROM unnest(_queues) name ORDER BY name OFFSET 0) o;
  _numbers := ARRAY(
    SELECT q.queue FROM unnest(_queues) WITH ORDINALITY o(name, n), LATERAL (SELECT queue FROM queues WHERE name = o.name OFFSET 0) q ORDER BY n
  );
  FOR _one IN
    SELECT queue, marks & 4 > 0 AS waits, array_agg(n) AS ns FROM unnest(_numbers, _marks) WITH ORDINALITY o(queue, marks, n)
    GROUP BY 1, 2 ORDER BY queue, waits DESC
  LOOP
    -- include: part-of-family
    IF _one.waits THEN
      _got := put_parents(
        _one.queue, _clock, _part.ids, _part.names, _part.data, _part.opts, _part.priorities, _part.delays, _part.timestamps,
        _part.keys, _part.marks, _part.extras
      );
    ELSE
      _got := put_jobs(
        _one.queue, _clock, _part.ids, _part.names, _part.data, _part.opts, _part.priorities, _part.delays, _part.lifos,
        _part.timestamps, _part.keys, _part.marks, _part.extras, no_change(_one.queue)
      );
    END IF;
    -- A variable of its own: an element of an array of texts in a record takes a walk through the array.
    _put := _got._chosen;
    FOR _n IN 1 .. cardinality(_one.ns) LOOP
      _chosen[_one.ns[_n]] := _put[_n];
      IF _got._made IS NOT NULL THEN _made[_one.ns[_n]] := false; END IF;
    END LOOP;
    FOR _n IN 1 .. coalesce(cardinality(_got._made), 0) LOOP
      _made[_one.ns[_got._made[_n]]] := true;
    END LOOP;
    _change := _got._change;
    -- include: note
  END LOOP;
  PERFORM link_family(_numbers, _ids, _chosen, _made, _extras, _shares);
  PERFORM release_parent(queue, id) FROM unnest(_numbers, _chosen, _marks) o(queue, id, marks)
  WHERE marks & 4 > 0 AND NOT EXISTS (SELECT FROM families f WHERE f.queue = o.queue AND f.parent = o.id AND f.pending > 0 OFFSET 0);
  RETURN json_build_object('ids', _chosen, 'made', _made, 'sent', has_sent());
END
$body$;
