-- Returns exact counts from one snapshot, without reading jobs.
-- Called by: list-jobs.sql, retain.sql, select-listed.sql, status.sql, take.sql.
CREATE FUNCTION counts_of(
  _queue int, OUT waiting bigint, OUT prioritized bigint, OUT delayed bigint, OUT active bigint,
  OUT completed bigint, OUT failed bigint, OUT "waiting-children" bigint
) RETURNS record LANGUAGE plpgsql AS $body$
BEGIN
  SELECT q.waiting + coalesce(j.waiting, 0), q.prioritized + coalesce(j.prioritized, 0), q.delayed + coalesce(j.delayed, 0),
    q.active + coalesce(j.active, 0), q.completed + coalesce(j.completed, 0), q.failed + coalesce(j.failed, 0),
    q.parents + coalesce(j.parents, 0)
  INTO waiting, prioritized, delayed, active, completed, failed, "waiting-children"
  FROM queues q,
    LATERAL (
      SELECT sum(journal.waiting) waiting, sum(journal.prioritized) prioritized, sum(journal.delayed) delayed,
        sum(journal.active) active, sum(journal.completed) completed, sum(journal.failed) failed,
        sum(journal.parents) parents
      FROM journal WHERE journal.queue = q.queue AND journal.number >= q.journal_from
    ) j
  WHERE q.queue = _queue;
END
$body$;
