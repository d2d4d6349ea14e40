-- Delivers messages of children to one parent: the newest of each link sets its state, and the parent may move on. _from, _numbers, _bodies: the
-- sending queues, the numbers and the texts of the messages (send-to-parents.sql). The caller holds the lock of the parent's job.
-- Two relays may deliver the messages of one link in another order. So a link takes only a message that is newer than the last one, and
-- none that is older than the link itself. An older message may still doom or release the parent, as it would have done in its turn.
-- Called by: relay.sql.
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
