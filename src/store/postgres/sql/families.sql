-- Families: parents, children, and the messages between their queues.

-- name: add_family
-- Adds jobs with parents or children, in any queues, as a whole or not at all. _queues: the name of each job's queue. A refused call leaves
-- nothing behind, not even a queue; only a queue that exists remembers it.
-- In a transaction of the user, the parents and children that exist stay locked until its end.
-- Called by: add-family.ts.
-- RAISED.refusedFamily = HF004
CREATE FUNCTION add_family(
  _name text, _caller text, _seq bigint, _queues text[], _ids text[], _names text[], _data text[], _opts text[], _priorities int[],
  _delays float8[], _lifos boolean[], _timestamps float8[], _keys text[], _marks smallint[], _extras text[], _shares boolean[]
) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _queue int := (SELECT queue FROM queues WHERE name = _name);
  _isnew boolean := _queue IS NULL;
  _reply text;
BEGIN
  IF _caller IS NOT NULL AND NOT _isnew THEN
    _reply := enter_add(_queue, _caller, _seq);
    IF _reply IS NOT NULL THEN RETURN _reply; END IF;
  END IF;
  BEGIN
    IF _isnew THEN
      _queue := queue_of(_name);
      IF _caller IS NOT NULL THEN _reply := enter_add(_queue, _caller, _seq); END IF;
    END IF;
    IF _reply IS NULL THEN
      _reply := put_family(
        _queues, _ids, _names, _data, _opts, _priorities, _delays, _lifos, _timestamps, _keys, _marks, _extras, _shares
      );
    END IF;
  EXCEPTION WHEN SQLSTATE 'HF004' THEN
    _reply := SQLERRM;
    IF _isnew THEN RETURN _reply; END IF;
  END;
  IF _caller IS NOT NULL THEN
    UPDATE callers SET seq = _seq, used_at = clock_ms(), reply = _reply WHERE queue = _queue AND id = _caller;
    -- include: fold-sometimes
  END IF;
  RETURN _reply;
END
$body$;

-- name: enter_add
-- Locks the caller of an add. Returns the reply if the call was carried out before.
-- Called by: add_family.
CREATE FUNCTION enter_add(_queue int, _caller text, _seq bigint) RETURNS text LANGUAGE plpgsql AS $body$
DECLARE
  _last bigint := enter_call(_queue, _caller);
BEGIN
  -- Its caller gave up on it and went on, so the call must not be applied now.
  IF _seq < _last THEN PERFORM refuse_straggler(_caller, _seq, _last); END IF;
  -- A transaction that a user leaves open may hold an id. The call fails soon, because other calls may wait behind it.
  PERFORM set_config('lock_timeout', '2s', true);
  RETURN (SELECT reply FROM callers WHERE queue = _queue AND id = _caller AND seq = _seq);
END
$body$;

-- name: adopt_child
-- Gives a job that existed before the call further parents. A link that exists stays as it is. A job that has finished sends its end to the
-- parents that are new to it. The caller holds the locks of the job and of the parents.
-- Called by: link_family.
-- States: 4 completed, 5 failed.
-- MARK.child = 2
CREATE FUNCTION adopt_child(_queue int, _id text, _parents jsonb) RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
  _job record;
  _fresh jsonb;
BEGIN
  SELECT state, extras, returnvalue, failed_reason INTO _job FROM jobs WHERE queue = _queue AND id = _id;
  UPDATE jobs
  SET marks = marks | 2, extras = coalesce(extras::jsonb, '{}') || jsonb_build_object(
    'p', (
      SELECT jsonb_agg(p ORDER BY n)
      FROM (
        SELECT DISTINCT ON (p ->> 'queue', p ->> 'id') p, n
        FROM jsonb_array_elements(coalesce(_job.extras::jsonb -> 'p', '[]') || _parents) WITH ORDINALITY o(p, n)
        ORDER BY p ->> 'queue', p ->> 'id', n
      ) o
    )
  )
  WHERE queue = _queue AND id = _id;
  SELECT jsonb_agg(p) INTO _fresh
  FROM jsonb_array_elements(_parents) p, LATERAL (SELECT queue FROM queues WHERE name = p ->> 'queue' OFFSET 0) q
  WHERE NOT EXISTS (
    SELECT FROM links l WHERE l.queue = q.queue AND l.parent = p ->> 'id' AND l.child_queue = _queue AND l.child = _id OFFSET 0
  );
  IF _fresh IS NULL THEN RETURN; END IF;
  WITH made AS (
    INSERT INTO links (queue, parent, child_queue, child, since, sent)
    SELECT q.queue, p ->> 'id', _queue, _id, m.number, m.number
    FROM jsonb_array_elements(_fresh) p, LATERAL (SELECT queue FROM queues WHERE name = p ->> 'queue' OFFSET 0) q,
      (SELECT nextval('messages') AS number) m
    ON CONFLICT (queue, parent, child_queue, child) DO NOTHING RETURNING queue, parent
  )
  INSERT INTO families (queue, parent, pending) SELECT queue, parent, 1 FROM made
  ON CONFLICT (queue, parent) DO UPDATE SET pending = families.pending + excluded.pending;
  IF _job.state + 0 IN (4, 5) THEN
    PERFORM send_to_parents(
      _queue, json_build_array(kin_of(_id, json_build_object('p', _fresh)::text, _job.state, _job.returnvalue, _job.failed_reason)), false
    );
  END IF;
END
$body$;

-- name: any_undone
-- Returns whether a schedule of the queue owes a job, or the queue sends or gets a message that is not delivered. It reads the snapshot of
-- its caller, because it is STABLE.
-- Called by: claim_plain, claim, probe, settle_children, settle_groups, settle_plain, take.
CREATE FUNCTION any_undone(_queue int, _name text) RETURNS boolean LANGUAGE plpgsql STABLE AS $body$
BEGIN
  RETURN (SELECT version FROM schedules WHERE queue = _queue AND state = 'owing' ORDER BY version LIMIT 1) IS NOT NULL
    OR (SELECT number FROM outbox WHERE queue = _queue ORDER BY number LIMIT 1) IS NOT NULL
    OR (SELECT number FROM outbox WHERE to_queue = _name ORDER BY number LIMIT 1) IS NOT NULL;
END
$body$;

-- name: child_item
-- Returns what a message says about one child: the state of its link, its result or the reason of its failure, and what a failure does to
-- the parent (deliver).
-- Called by: send_to_parents, settle_children.
CREATE FUNCTION child_item(_child text, _link text, _text text, _release text, _doom text) RETURNS json LANGUAGE sql STABLE AS $body$
SELECT json_build_array(_child, _link, _text, _release, _doom)
$body$;

-- name: child_message
-- Returns a message from children to a parent: their items (child_item).
-- Called by: send_to_parents, settle_children.
CREATE FUNCTION child_message(_parent text, _items json) RETURNS text LANGUAGE sql STABLE AS $body$
SELECT json_build_object('kind', 'child', 'id', _parent, 'items', _items)::text
$body$;

-- name: children_of
-- Returns the links of a job in some states, after the child _after_child of the queue _after_queue, and how many links of each state the
-- job has. The page is cut at _limit links, or at _budget bytes of texts.
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

-- name: deliver
-- Delivers messages of children to one parent: the newest of each link sets its state, and the parent may move on. _from, _numbers,
-- _bodies: the sending queues, the numbers and the texts of the messages (send_to_parents). The caller holds the lock of the parent's job.
-- Two relays may deliver the messages of one link in another order. So a link takes only a message that is newer than the last one, and
-- none that is older than the link itself. An older message may still doom or release the parent, as it would have done in its turn.
-- Called by: relay.
CREATE FUNCTION deliver(_queue int, _parent text, _from int[], _numbers bigint[], _bodies text[]) RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
  _sum record;
  _left int;
BEGIN
  WITH news AS MATERIALIZED (
    SELECT m.child_queue, m.number, i ->> 0 AS child, i ->> 1 AS link, i ->> 2 AS said, i ->> 3 AS release, i ->> 4 = 'true' AS doom,
      l.at, l.state AS before, l.sent
    FROM unnest(_from, _numbers, _bodies) m(child_queue, number, body), json_array_elements(m.body::json -> 'items') i,
      LATERAL (
        SELECT ctid AS at, state, sent, since FROM links l
        WHERE l.queue = _queue AND l.parent = _parent AND l.child_queue = m.child_queue AND l.child = i ->> 0 OFFSET 0
      ) l
    WHERE m.number > l.since
  ), newest AS MATERIALIZED (
    SELECT DISTINCT ON (child_queue, child) * FROM news WHERE number > sent ORDER BY child_queue, child, number DESC
  ), gone AS (DELETE FROM links l USING newest n WHERE l.ctid = n.at AND n.link = 'removed'), put AS (
    UPDATE links l SET state = n.link, text = n.said, sent = n.number FROM newest n WHERE l.ctid = n.at AND n.link <> 'removed'
  )
  SELECT (SELECT count(*) FROM news) AS news,
    (
      SELECT jsonb_build_object('queue', q.name, 'id', n.child) FROM (SELECT * FROM news WHERE doom ORDER BY number LIMIT 1) n, queues q
      WHERE q.queue = n.child_queue
    ) AS doomed_by,
    (SELECT bool_or(release = 'now') FROM news) AS now,
    count(*) FILTER (WHERE link = 'pending') - count(*) FILTER (WHERE before = 'pending') AS pending,
    count(*) FILTER (WHERE link = 'processed') - count(*) FILTER (WHERE before = 'processed') AS processed,
    count(*) FILTER (WHERE link = 'failed') - count(*) FILTER (WHERE before = 'failed') AS failed,
    count(*) FILTER (WHERE link = 'ignored') - count(*) FILTER (WHERE before = 'ignored') AS ignored
  INTO _sum FROM newest;
  IF _sum.news = 0 THEN RETURN; END IF;
  UPDATE families
  SET pending = pending + _sum.pending, processed = processed + _sum.processed, failed = failed + _sum.failed,
    ignored = ignored + _sum.ignored
  WHERE queue = _queue AND parent = _parent RETURNING pending INTO _left;
  IF _sum.doomed_by IS NOT NULL THEN
    PERFORM release_parent(_queue, _parent, _sum.doomed_by);
  ELSIF _sum.now OR _left = 0 THEN
    PERFORM release_parent(_queue, _parent);
  END IF;
END
$body$;

-- name: ensure_families
-- Creates queues that send or get messages, if they are none yet. _others: queues that need not exist. A user's transaction must not do
-- it: it would hold the rows of the queues until its end.
-- Called by: add-family.ts.
CREATE FUNCTION ensure_families(_names text[], _others text[]) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
BEGIN
  PERFORM relate(ARRAY(SELECT queue_of(name) FROM (SELECT DISTINCT name FROM unnest(_names) name ORDER BY name OFFSET 0) n), _others);
  RETURN 'null';
END
$body$;

-- name: has_sent
-- Returns whether this transaction has written a message that relay delivers.
-- Called by: put_family, put_unique, relay, settle, sweep_reap.
CREATE FUNCTION has_sent() RETURNS boolean LANGUAGE sql STABLE AS $body$
SELECT coalesce(current_setting('holdfast.sent', true) = '1', false)
$body$;

-- name: kin_of
-- Returns a row for send_to_parents: a job, its extras, its state and, if it has finished, its result or the reason of its failure.
-- Called by: adopt_child, drop_jobs, fail_open, send_ends, send_to_waiting.
-- States: 4 completed, 5 failed.
CREATE FUNCTION kin_of(_id text, _extras text, _state smallint, _value text, _reason text) RETURNS json LANGUAGE sql STABLE AS $body$
SELECT json_build_array(_id, _extras, _state, CASE _state WHEN 4 THEN _value WHEN 5 THEN _reason END)
$body$;

-- name: last_parents
-- Locks the parents in the queue whose pending children are all in _rows, if no other transaction holds them, and returns where they are. A
-- parent that another transaction holds is released by the messages of its children instead.
-- Called by: clear_lists.
-- States: 6 waiting-children.
-- MARK.child = 2
CREATE FUNCTION last_parents(_queue int, _rows tid[]) RETURNS tid[] LANGUAGE plpgsql AS $body$
DECLARE
  _name text := (SELECT name FROM queues WHERE queue = _queue);
  _found text[];
  _counts int[];
  _locked tid[];
BEGIN
  SELECT array_agg(parent), array_agg(children) INTO _found, _counts
  FROM (
    SELECT p ->> 'id' AS parent, count(*)::int AS children
    FROM unnest(_rows) at, LATERAL (SELECT id, marks, extras FROM jobs WHERE ctid = at OFFSET 0) j,
      json_array_elements(CASE WHEN j.marks & 2 > 0 THEN j.extras::json -> 'p' END) p,
      LATERAL (
        SELECT FROM links
        WHERE queue = _queue AND parent = p ->> 'id' AND child_queue = _queue AND child = j.id AND state = 'pending' OFFSET 0
      ) l
    WHERE p ->> 'queue' = _name GROUP BY p ->> 'id'
  ) waiting;
  SELECT array_agg(at), array_agg(children) INTO _locked, _counts
  FROM (
    SELECT j.at, o.children FROM unnest(_found, _counts) o(id, children),
      LATERAL (
        SELECT ctid AS at FROM jobs j
        WHERE j.queue = _queue AND j.id = o.id AND j.state + 0 = 6 AND j.ctid <> ALL (_rows) AND (xmax = 0 OR untouched(xmax))
        FOR UPDATE SKIP LOCKED
      ) j
  ) locked;
  -- Read under the locks.
  RETURN ARRAY(
    SELECT at FROM unnest(_locked, _counts) o(at, children), LATERAL (SELECT id FROM jobs WHERE ctid = at OFFSET 0) j,
      LATERAL (SELECT pending FROM families WHERE queue = _queue AND parent = j.id OFFSET 0) f
    WHERE f.pending = o.children
  );
END
$body$;

-- name: link_family
-- Links the children of a call to their parents. Locks the parents, and the jobs that existed before. Raises an error if a parent does not
-- exist, or an existing child has another living parent.
-- Called by: put_family.
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

-- name: lock_kin
-- Locks jobs of any queues, in the order of (queue, id), as all transactions that lock jobs of several queues do. Returns for each of them
-- whether it is locked now or does not exist. _wait: waits for jobs that other transactions hold; otherwise leaves these out.
-- Called by: link_family, relay.
CREATE FUNCTION lock_kin(_queues int[], _ids text[], _wait boolean) RETURNS boolean[] LANGUAGE plpgsql AS $body$
DECLARE
  _one record;
  _busy text[] := '{}';
BEGIN
  IF _wait THEN
    PERFORM FROM (SELECT DISTINCT queue, id COLLATE "C" AS id FROM unnest(_queues, _ids) o(queue, id) ORDER BY queue, id) o,
      LATERAL (SELECT FROM jobs WHERE queue = o.queue AND jobs.id = o.id FOR UPDATE) j;
    RETURN array_fill(true, ARRAY[cardinality(_ids)]);
  END IF;
  FOR _one IN SELECT DISTINCT queue, id COLLATE "C" AS id FROM unnest(_queues, _ids) o(queue, id) ORDER BY queue, id LOOP
    PERFORM FROM jobs WHERE queue = _one.queue AND id = _one.id AND (xmax = 0 OR untouched(xmax)) FOR UPDATE SKIP LOCKED;
    IF NOT FOUND AND EXISTS (SELECT FROM jobs WHERE queue = _one.queue AND id = _one.id) THEN
      _busy := _busy || (_one.queue || ' ' || _one.id);
    END IF;
  END LOOP;
  RETURN ARRAY(SELECT queue || ' ' || id <> ALL (_busy) FROM unnest(_queues, _ids) WITH ORDINALITY o(queue, id, n) ORDER BY n);
END
$body$;

-- name: part_child
-- Takes parents (the jobs _ids of the queues _from) from a child, unless they are linked (again). _removing: the parents were removed, so
-- the child goes too if it has no other parent and is not locked, with its own children. The caller holds the lock of the child.
-- Called by: relay.
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

-- name: put_family
-- Puts the jobs of a family into their queues, and links them. All jobs are inserted before any existing one is locked, both in the order
-- of (queue, id): two calls never wait for each other in a circle. Returns the reply of add_family: ids, and which of the jobs are new.
-- Called by: add_family.
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
    -- Sets _part: the values of the jobs _one.ns.
    SELECT array_agg(_ids[n] ORDER BY i) AS ids, array_agg(_names[n] ORDER BY i) AS names, array_agg(_data[n] ORDER BY i) AS data,
      array_agg(_opts[n] ORDER BY i) AS opts, array_agg(_priorities[n] ORDER BY i) AS priorities,
      array_agg(_delays[n] ORDER BY i) AS delays, array_agg(_lifos[n] ORDER BY i) AS lifos,
      array_agg(_timestamps[n] ORDER BY i) AS timestamps,
      CASE WHEN count(_keys[n]) > 0 THEN array_agg(_keys[n] ORDER BY i) END AS keys, array_agg(_marks[n] ORDER BY i) AS marks,
      array_agg(_extras[n] ORDER BY i) AS extras
    INTO _part FROM unnest(_one.ns) WITH ORDINALITY o(n, i);
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

-- name: put_parents
-- Puts new jobs that wait for children into a queue. _made: which of them are new; null: all. The delay of a job begins when it is
-- released.
-- Called by: put_family.
-- States: 6 waiting-children.
-- MARK.key = 1
CREATE FUNCTION put_parents(
  _queue int, _clock float8, _ids text[], _names text[], _data text[], _opts text[], _priorities int[], _delays float8[],
  _timestamps float8[], _keys text[], _marks smallint[], _extras text[], OUT _change journal, OUT _chosen text[], OUT _made bigint[]
) RETURNS record LANGUAGE plpgsql AS $body$
DECLARE
  _counter regclass := 'ids_' || _queue;
  _base bigint := nextval('places');
  _new text[];
  _known text[];
BEGIN
  _chosen := _ids;
  FOR _n IN 1 .. cardinality(_names) LOOP
    WHILE _chosen[_n] IS NULL OR _ids[_n] IS NULL AND EXISTS (SELECT FROM jobs WHERE queue = _queue AND id = _chosen[_n]) LOOP
      _chosen[_n] := nextval(_counter);
    END LOOP;
  END LOOP;
  IF (SELECT bool_or(mark & 1 > 0) FROM unnest(_marks) mark) THEN PERFORM be_grouped(_queue); END IF;
  WITH put AS (
    INSERT INTO jobs (queue, state, priority, ord, added, added_at, delay, timestamp, id, name, opts, data, lock_key, marks, extras)
    SELECT _queue, 6, coalesce(priority, 0), _base + n, _base + n, floor(_clock), coalesce(delay, 0), timestamp, id, name, opts, data, key,
      marks, extras
    FROM unnest(_chosen, _names, _data, _opts, _priorities, _delays, _timestamps, _keys, _marks, _extras) WITH ORDINALITY
      o(id, name, data, opts, priority, delay, timestamp, key, marks, extras, n)
    ORDER BY id, n
    ON CONFLICT (queue, id) DO NOTHING RETURNING added - _base AS n
  )
  SELECT coalesce(array_agg(n ORDER BY n), '{}') INTO _made FROM put;
  _change := no_change(_queue);
  SELECT array_agg(_chosen[n] ORDER BY n) INTO _new FROM unnest(_made) n;
  SELECT array_agg(_chosen[n] ORDER BY n) INTO _known FROM (SELECT generate_subscripts(_names, 1) EXCEPT SELECT unnest(_made)) o(n);
  _change.events := cardinality(_names) + cardinality(_made);
  _change.parents := cardinality(_made);
  _change.body := concat_ws(
    ',',
    CASE WHEN _new IS NOT NULL THEN
      event('added', _new, json_build_object('jobName', ARRAY(SELECT _names[n] FROM unnest(_made) WITH ORDINALITY m(n, i) ORDER BY i)))
    END,
    CASE WHEN _new IS NOT NULL THEN event('waiting-children', _new) END,
    CASE WHEN _known IS NOT NULL THEN event('duplicated', _known) END
  );
  IF cardinality(_made) = cardinality(_names) THEN _made := NULL; END IF;
END
$body$;

-- name: refuse_family
-- Raises an error with the statuses of all jobs of a call if one of them is refused: a parent does not exist (or comes later in the call),
-- or a child that exists has another living parent. _ns, _queues, _parents: the jobs with parents, and their parents. The caller holds the
-- locks.
-- Called by: link_family.
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

-- name: relate
-- Makes queues ones that send or get messages, the first time. _names: further queues; those that do not exist are left out.
-- Called by: ensure_families, link_family, put_jobs, put_letter, send_back.
CREATE FUNCTION relate(_queues int[], _names text[] DEFAULT NULL) RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
  _one int;
BEGIN
  IF _names IS NOT NULL THEN _queues := _queues || ARRAY(SELECT queue FROM queues WHERE name = ANY (_names)); END IF;
  FOR _one IN SELECT DISTINCT queue FROM unnest(_queues) queue ORDER BY queue LOOP
    UPDATE queues SET scheduled = true WHERE queue = _one AND NOT scheduled;
  END LOOP;
END
$body$;

-- name: relay
-- Delivers messages that a queue sends or gets, and deletes them. The reply: Relayed in state/relays.ts.
-- A job that another transaction holds for long keeps its messages waiting, and no others.
-- Called by: state/relays.ts.
-- PATIENCE = 300ms: how long a relay waits for the jobs that other transactions hold.
CREATE FUNCTION relay(_name text, _limit int) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _queue int := (SELECT queue FROM queues WHERE name = _name);
  _newest bigint := (SELECT number FROM outbox WHERE queue = _queue ORDER BY number DESC LIMIT 1);
  _rows tid[] := take_messages(_queue, _name, _limit);
  _free boolean[];
  _taken record;
  _names text[];
  _one record;
  _oldest bigint;
BEGIN
  IF cardinality(_rows) > 0 THEN
    SELECT array_agg(queue) AS queues, array_agg(number) AS numbers, array_agg(at) AS ats, array_agg(body) AS bodies,
      array_agg(to_queue) AS names, array_agg(receiver) AS receivers, array_agg(message ->> 'kind') AS kinds, array_agg(message ->> 'id') AS ids
    INTO _taken
    FROM (
      SELECT at, m.*, m.body::json AS message, q.queue AS receiver FROM unnest(_rows) at, LATERAL (SELECT * FROM outbox WHERE ctid = at OFFSET 0) m
      LEFT JOIN LATERAL (SELECT queue FROM queues WHERE name = m.to_queue OFFSET 0) q ON true ORDER BY m.number
    ) taken;
    _names := _taken.names;
    PERFORM set_config('lock_timeout', '300ms', true), set_config('holdfast.sent', '', true);
    BEGIN
      _free := lock_kin(_taken.receivers, _taken.ids, true);
    EXCEPTION WHEN lock_not_available THEN
      _free := lock_kin(_taken.receivers, _taken.ids, false);
    END;
    FOR _one IN
      -- The messages of _taken whose jobs are locked, together for each job that they go to, in the order of the jobs.
      SELECT kind, queue, name, id, array_agg(sender ORDER BY number) AS senders, array_agg(number ORDER BY number) AS numbers,
        array_agg(body ORDER BY number) AS bodies
      FROM unnest(_taken.kinds, _taken.receivers, _taken.names, _taken.ids, _taken.queues, _taken.numbers, _taken.bodies, _free)
        o(kind, queue, name, id, sender, number, body, free)
      WHERE free IS NOT FALSE GROUP BY kind, queue, name, id ORDER BY queue, id COLLATE "C", kind
    LOOP
      IF _one.kind = 'child' THEN
        PERFORM deliver(_one.queue, _one.id, _one.senders, _one.numbers, _one.bodies);
      ELSIF _one.kind = 'part' THEN
        PERFORM part_child(_one.queue, _one.id, senders, parents, removing)
        FROM (
          -- The messages of _one that take parents from a child, in their order. Those of one kind that follow one another are one row:
          -- each row costs as much as the child has parents.
          SELECT array_agg(sender) AS senders, array_agg(parent) AS parents, removing
          FROM (
            SELECT m.*, n - row_number() OVER (PARTITION BY removing ORDER BY n) AS run
            FROM (
              SELECT n, sender, body::json ->> 'parent' AS parent, body::json ->> 'remove' = 'true' AS removing
              FROM unnest(_one.senders, _one.bodies) WITH ORDINALITY o(sender, body, n)
            ) m
          ) m
          GROUP BY removing, run ORDER BY min(n)
        ) runs;
      ELSE
        PERFORM put_letter(_one.name, body::json) FROM unnest(_one.bodies) body;
      END IF;
    END LOOP;
    _rows := ARRAY(SELECT at FROM unnest(_taken.ats, _free) o(at, free) WHERE free IS NOT FALSE);
    DELETE FROM outbox WHERE ctid = ANY (_rows);
  END IF;
  _oldest := (SELECT number FROM outbox WHERE queue = _queue ORDER BY number LIMIT 1);
  RETURN json_build_object(
    'delivered', coalesce(cardinality(_rows), 0), 'more',
    _oldest IS NOT NULL OR (SELECT number FROM outbox WHERE to_queue = _name ORDER BY number LIMIT 1) IS NOT NULL, 'queues',
    ARRAY(SELECT DISTINCT name FROM unnest(_names) name), 'sent', has_sent(), 'newest', _newest, 'oldest', _oldest
  );
END
$body$;

-- name: release_parent
-- Moves a parent that waits for children on: to the front of waiting, or to delayed for the delay that it was added with. _child: a child
-- that failed and so dooms the parent, as JSON. A doomed parent waits at once, also if it was delayed; a parent that is active or has
-- finished keeps its state and is not doomed. The caller holds the lock of the job.
-- Called by: deliver, put_family, unlink_jobs.
-- States: 1 waiting, 2 delayed, 3 active, 4 completed, 5 failed, 6 waiting-children.
-- MARK.key = 1
-- MARK.doomed = 64
CREATE FUNCTION release_parent(_queue int, _id text, _child jsonb DEFAULT NULL) RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
  _clock float8 := clock_ms();
  _base bigint;
  _change journal := no_change(_queue);
  _from smallint;
  _later boolean;
  _job record;
BEGIN
  SELECT state, delay INTO _job FROM jobs WHERE queue = _queue AND id = _id;
  _from := _job.state;
  IF _child IS NULL AND _from IS DISTINCT FROM 6 OR _from IN (3, 4, 5) THEN RETURN; END IF;
  IF _child IS NOT NULL THEN
    UPDATE jobs SET marks = marks | 64, extras = coalesce(extras::jsonb, '{}') || jsonb_build_object('x', _child)
    WHERE queue = _queue AND id = _id;
    IF _from <= 1 THEN RETURN; END IF;
  END IF;
  _later := _child IS NULL AND _job.delay > 0;
  _base := nextval('places') + 1;
  UPDATE jobs
  SET state = CASE WHEN _later THEN 2 ELSE
      -- include: waiting-state
    END,
    lock_key = CASE WHEN _later THEN lock_key ELSE
      -- include: waiting-key
    END,
    ord = CASE WHEN _later THEN _base ELSE -_base END, delay = CASE WHEN _later THEN delay ELSE 0 END,
    due_at = CASE WHEN _later THEN ceil(_clock + delay) END
  WHERE queue = _queue AND id = _id
  RETURNING priority, due_at, CASE WHEN marks & 1 > 0 THEN lock_key END AS member INTO _job;
  IF _from = 6 THEN _change.parents := -1; ELSE _change.delayed := -1; END IF;
  _change.events := 1;
  IF _later THEN
    _change.delayed := _change.delayed + 1;
    _change.body := event('delayed', ARRAY[_id], json_build_object('delay', _job.due_at));
  ELSE
    IF _job.priority = 0 THEN _change.waiting := 1; ELSE _change.prioritized := 1; END IF;
    _change.body := event('waiting', ARRAY[_id], json_build_object('prev', CASE _from WHEN 6 THEN 'waiting-children' ELSE 'delayed' END));
    IF _job.member IS NOT NULL THEN PERFORM note_groups(_queue, NULL, ARRAY[_job.member::text]); END IF;
  END IF;
  -- include: note
END
$body$;

-- name: send_ends
-- Does what the end of jobs means for jobs of other queues: it writes messages to their parents, and letters. The jobs are no longer doomed
-- or cancelled: a retry must not fail by what happened before. A cancelled job sends no letter. _gone: which of the jobs are removed on
-- finishing; they are deleted here. _fences: of the runs that ended, if the rows no longer have them.
-- The caller has finished the jobs in this transaction.
-- Called by: carry_out, hand_back.
-- States: 5 failed.
-- MARK.child = 2
-- MARK.doomed = 64
-- MARK.letter = 128
-- MARK.cancelled = 256
CREATE FUNCTION send_ends(
  _queue int, _ids text[], _gone boolean[] DEFAULT NULL, _fences bigint[] DEFAULT NULL
) RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
  _job record;
  _kin json;
  _rows tid[];
BEGIN
  SELECT json_agg(kin_of(j.id, j.extras, j.state, j.returnvalue, j.failed_reason)) INTO _kin FROM unnest(_ids) o(id),
    LATERAL (SELECT * FROM jobs j WHERE j.queue = _queue AND j.id = o.id AND j.marks & 2 > 0 OFFSET 0) j;
  IF _kin IS NOT NULL THEN PERFORM send_to_parents(_queue, _kin, false); END IF;
  FOR _job IN
    SELECT j.*, coalesce(j.fence, o.fence) AS run FROM unnest(_ids, _fences) o(id, fence),
      LATERAL (SELECT * FROM jobs j WHERE j.queue = _queue AND j.id = o.id AND j.marks & (64 | 128 | 256) > 0 OFFSET 0) j
  LOOP
    IF _job.marks & (64 | 256) > 0 THEN
      UPDATE jobs SET marks = marks & ~(64 | 256), extras = NULLIF((extras::jsonb - 'x' - 'c')::text, '{}')
      WHERE queue = _queue AND id = _job.id;
    END IF;
    IF _job.marks & (128 | 256) = 128 AND _job.state + 0 = 5 THEN
      -- Writes the letter of _job, whose run has failed for good. Its id is that of `letterId` in job/dead-letter.ts, its extras hold the
      -- origin.
      INSERT INTO outbox (queue, to_queue, body)
      SELECT _queue, extras ->> 'l', json_build_object(
        'kind', 'letter', 'ids', ARRAY[name || ':' || _job.id || ':' || _job.run], 'name', _job.name, 'data', _job.data, 'opts', _job.opts,
        'timestamp', _job.timestamp, 'priority', 0, 'marks', 0, 'extras', json_build_object(
          'o', json_strip_nulls(
            json_build_object(
              'queue', name, 'id', _job.id, 'failedReason', _job.failed_reason, 'attemptsMade', _job.attempts_made, 'failedOn',
              _job.finished_on, 'priority', _job.priority, 'lockKey', _job.lock_key, 'group', extras ->> 'g', 'deadLetter', extras ->> 'l'
            )
          )
        )
      )::text
      FROM queues, LATERAL (SELECT _job.extras::json AS extras) e WHERE queue = _queue;
      PERFORM set_config('holdfast.sent', '1', true);
    END IF;
  END LOOP;
  IF true = ANY (_gone) THEN
    _rows := ARRAY(
      SELECT j.at FROM unnest(_ids, _gone) o(id, gone),
        LATERAL (SELECT ctid AS at FROM jobs j WHERE j.queue = _queue AND j.id = o.id AND true OFFSET 0) j
      WHERE o.gone
    );
    PERFORM drop_jobs(_queue, _rows);
  END IF;
END
$body$;

-- name: send_to_children
-- Writes messages that take removed parents from their children, and remove the children that have no other parent. The caller deletes the
-- links after this.
-- Called by: clear_lists, remove_jobs.
CREATE FUNCTION send_to_children(_queue int, _parents text[]) RETURNS void LANGUAGE plpgsql AS $body$
BEGIN
  INSERT INTO outbox (queue, to_queue, body)
  SELECT _queue, q.name, json_build_object('kind', 'part', 'id', l.child, 'parent', l.parent, 'remove', true)::text
  FROM unnest(_parents) p(id), LATERAL (SELECT * FROM links WHERE queue = _queue AND parent = p.id OFFSET 0) l,
    LATERAL (SELECT name FROM queues WHERE queue = l.child_queue OFFSET 0) q;
  IF FOUND THEN PERFORM set_config('holdfast.sent', '1', true); END IF;
END
$body$;

-- name: send_to_parents
-- Writes messages from jobs to their parents, one message for each parent. _kin: rows of kin_of. _gone: the jobs were removed. A job that
-- is neither removed nor finished was retried. Each message says what the link has to be now, so a message that is delivered before an
-- older one makes the older one needless.
-- A failure without an instruction sends nothing, and a
-- removal releases nothing at once.
-- The caller holds the locks of the jobs, so the numbers of the messages grow with the changes of each job.
-- Called by: adopt_child, drop_jobs, fail_open, send_ends, send_to_waiting.
-- States: 4 completed, 5 failed.
CREATE FUNCTION send_to_parents(_queue int, _kin json, _gone boolean) RETURNS void LANGUAGE plpgsql AS $body$
BEGIN
  INSERT INTO outbox (queue, to_queue, body)
  SELECT _queue, to_queue, child_message(parent, json_agg(item))
  FROM (
    SELECT p ->> 'queue' AS to_queue, p ->> 'id' AS parent,
      CASE WHEN link IS NOT NULL THEN child_item(
        id, link, said, CASE WHEN NOT _gone AND state = 5 THEN p #>> '{onFailure,release}' END,
        CASE WHEN NOT _gone AND state = 5 THEN p #>> '{onFailure,doom}' END
      ) END AS item
    FROM (
        -- Each kin is parsed once, and not for each of its parents.
        SELECT kin ->> 0 AS id, (kin ->> 1)::json -> 'p' AS parents, (kin ->> 2)::int AS state, kin ->> 3 AS said
        FROM json_array_elements(_kin) kin OFFSET 0
      ) k, json_array_elements(k.parents) p,
      LATERAL (
        SELECT coalesce(
          CASE state WHEN 4 THEN 'processed' WHEN 5 THEN p #>> '{onFailure,link}' END,
          CASE WHEN _gone THEN 'removed' WHEN state NOT IN (4, 5) THEN 'pending' END
        ) AS link
      ) l
  ) items
  WHERE item IS NOT NULL GROUP BY to_queue, parent;
  IF FOUND THEN PERFORM set_config('holdfast.sent', '1', true); END IF;
END
$body$;

-- name: take_messages
-- Locks up to _limit messages that the queue sends, then messages that it gets, the oldest first. It leaves out those that another relay
-- delivers at this moment. Returns where they are.
-- Called by: relay.
CREATE FUNCTION take_messages(_queue int, _name text, _limit int) RETURNS tid[] LANGUAGE plpgsql AS $body$
DECLARE
  _rows tid[] := ARRAY(SELECT ctid FROM outbox WHERE queue = _queue ORDER BY number LIMIT _limit FOR UPDATE SKIP LOCKED);
BEGIN
  IF cardinality(_rows) < _limit THEN
    _rows := _rows || ARRAY(
      SELECT ctid FROM outbox WHERE to_queue = _name AND queue IS DISTINCT FROM _queue
      ORDER BY number LIMIT _limit - cardinality(_rows) FOR UPDATE SKIP LOCKED
    );
  END IF;
  RETURN _rows;
END
$body$;

-- name: unlink_jobs
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

-- part: any-undone
-- True if the queue `q` has something undone. For queues without schedules, families and letters, the server neither reads nor opens a
-- table for it: it opens the tables of a subquery even if it never runs the subquery.
q.scheduled AND any_undone(q.queue, q.name)
