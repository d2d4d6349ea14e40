-- Dead letters.

-- name: put_letter
-- Adds the job of a message: a dead letter, or the job that a letter becomes when it is sent back. The job takes the first of its ids that
-- is free; null is a counted one. A letter whose only id is taken exists already.
-- Called by: relay.
CREATE FUNCTION put_letter(_name text, _letter json) RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
  _queue int := queue_of(_name);
  _id text;
  _change journal;
  _got record;
BEGIN
  PERFORM relate(ARRAY[_queue]);
  FOR _id IN SELECT id FROM json_array_elements_text(_letter -> 'ids') id LOOP
    CONTINUE WHEN EXISTS (SELECT FROM jobs WHERE queue = _queue AND id = _id);
    _got := put_jobs(
      _queue, clock_ms(), ARRAY[_id], ARRAY[_letter ->> 'name'], ARRAY[_letter ->> 'data'], ARRAY[_letter ->> 'opts'],
      ARRAY[(_letter ->> 'priority')::int], NULL, NULL, ARRAY[(_letter ->> 'timestamp')::float8],
      CASE WHEN _letter ->> 'key' IS NOT NULL THEN ARRAY[_letter ->> 'key'] END, ARRAY[(_letter ->> 'marks')::smallint],
      ARRAY[_letter ->> 'extras'], no_change(_queue)
    );
    -- Another transaction may have added the id meanwhile.
    CONTINUE WHEN _got._made IS NOT NULL;
    _change := _got._change;
    -- include: note
    RETURN;
  END LOOP;
END
$body$;

-- name: send_back
-- Sends locked letters to the queue that their jobs go back to, and removes them. Returns their ids. Jobs that are no letters stay.
-- Called by: send_letters, send_listed.
-- States: 1 waiting, 2 delayed, 4 completed, 5 failed, 6 waiting-children.
-- MARK.key = 1
-- MARK.letter = 128
CREATE FUNCTION send_back(_queue int, _rows tid[], _to text) RETURNS text[] LANGUAGE plpgsql AS $body$
DECLARE
  _change journal := no_change(_queue);
  _sum record;
BEGIN
  WITH letters AS MATERIALIZED (
    SELECT at, n, j.*, j.extras::json -> 'o' AS origin FROM unnest(_rows) WITH ORDINALITY r(at, n),
      LATERAL (SELECT * FROM jobs WHERE ctid = at OFFSET 0) j
    WHERE j.extras::json -> 'o' IS NOT NULL
  ), sent AS (
    INSERT INTO outbox (queue, to_queue, body)
    SELECT _queue, _to, json_build_object(
      'kind', 'send', 'ids', ARRAY[origin ->> 'id', id, NULL], 'name', name, 'data', data, 'opts', opts, 'timestamp', timestamp,
      'priority', origin -> 'priority', 'key', origin ->> 'lockKey', 'marks', CASE WHEN origin ->> 'group' IS NULL THEN 128 ELSE 128 + 1 END,
      'extras', json_strip_nulls(json_build_object('l', origin ->> 'deadLetter', 'g', origin ->> 'group'))
    )::text
    FROM letters ORDER BY n
  )
  SELECT array_agg(at ORDER BY n) AS rows, array_agg(id ORDER BY n) AS ids,
    array_agg((ARRAY['waiting', 'delayed', 'active', 'completed', 'failed', 'waiting-children'])[greatest(state, 1)] ORDER BY n) AS states,
    count(*) FILTER (WHERE state + 0 <= 1 AND priority = 0) AS waiting,
    count(*) FILTER (WHERE state + 0 <= 1 AND priority > 0) AS prioritized, count(*) FILTER (WHERE state = 2) AS delayed,
    count(*) FILTER (WHERE state = 4) AS completed, count(*) FILTER (WHERE state = 5) AS failed,
    nullif(count(*) FILTER (WHERE state = 6), 0) AS parents
  INTO _sum FROM letters;
  IF _sum.rows IS NULL THEN RETURN '{}'; END IF;
  PERFORM set_config('holdfast.sent', '1', true);
  _change.waiting := -_sum.waiting;
  _change.prioritized := -_sum.prioritized;
  _change.delayed := -_sum.delayed;
  _change.completed := -_sum.completed;
  _change.failed := -_sum.failed;
  _change.parents := -_sum.parents;
  _change.events := cardinality(_sum.ids);
  _change.body := event('removed', _sum.ids, json_build_object('prev', _sum.states));
  PERFORM drop_jobs(_queue, _sum.rows, true);
  PERFORM relate(ARRAY[_queue], ARRAY[_to]);
  -- include: note
  RETURN _sum.ids;
END
$body$;

-- name: send_letters
-- Sends letters back by their ids.
-- Called by: dead-letter.ts.
-- States: 3 active.
CREATE FUNCTION send_letters(_name text, _ids text[], _to text) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _queue int := (SELECT queue FROM queues WHERE name = _name);
  _locked text[];
  _rows tid[];
  _sent text[];
BEGIN
  -- include: lock-jobs
  _rows := ARRAY(
    SELECT j.at FROM (SELECT id, min(n) AS n FROM unnest(_ids) WITH ORDINALITY u(id, n) GROUP BY id) o,
      LATERAL (SELECT ctid AS at FROM jobs j WHERE j.queue = _queue AND j.id = o.id AND state + 0 <> 3 OFFSET 0) j
    WHERE o.id = ANY (_locked) ORDER BY o.n
  );
  _sent := send_back(_queue, _rows, _to);
  RETURN (
    SELECT json_agg(
      CASE WHEN o.id = ANY (_sent) AND o.nth = 1 THEN 'done' WHEN j.id IS NULL THEN 'missing' WHEN j.state + 0 = 3 THEN 'locked' ELSE 'state' END
      ORDER BY o.n
    )
    FROM (SELECT id, n, row_number() OVER (PARTITION BY id ORDER BY n) AS nth FROM unnest(_ids) WITH ORDINALITY u(id, n)) o
    LEFT JOIN LATERAL (SELECT id, state FROM jobs j WHERE j.queue = _queue AND j.id = o.id AND true OFFSET 0) j ON o.id = ANY (_locked)
  );
END
$body$;

-- name: send_listed
-- Sends the letters of some lists back, the oldest first. Other jobs of the lists stay.
-- Called by: dead-letter.ts.
CREATE FUNCTION send_listed(_name text, _lists text[], _age float8, _limit int, _to text) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _queue int := (SELECT queue FROM queues WHERE name = _name);
  _latest bigint := (CASE WHEN _age IS NULL THEN 9000000000000000 ELSE floor(clock_ms() - _age) END)::bigint;
  _list text;
  _ids text[] := '{}';
BEGIN
  FOREACH _list IN ARRAY _lists LOOP
    EXIT WHEN _queue IS NULL OR cardinality(_ids) >= _limit;
    _ids := _ids || send_back(_queue, select_listed(_queue, _list, _latest, _limit - cardinality(_ids), true, true), _to);
  END LOOP;
  RETURN to_json(_ids);
END
$body$;
