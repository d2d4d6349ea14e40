-- Writes messages from jobs to their parents, one message for each parent. _kin: rows of kin-of.sql. _gone: the jobs were removed. A job that is
-- neither removed nor finished was retried. Each message says what the link has to be now, so a message that is delivered before an
-- older one makes the older one needless.
-- A failure without an instruction sends nothing, and a
-- removal releases nothing at once.
-- The caller holds the locks of the jobs, so the numbers of the messages grow with the changes of each job.
-- Called by: adopt-child.sql, drop-jobs.sql, fail-open.sql, send-ends.sql, send-to-waiting.sql.
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
