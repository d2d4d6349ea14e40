-- The versions are exact at the moment of the commit, however long a transaction was open. A number that a transaction draws before its
-- commit could be passed by a later one that commits first.
-- Called by: wake.ts.
CREATE FUNCTION versions_of(_names text[]) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
BEGIN
  RETURN (
    SELECT json_agg(
      (
        SELECT q.last_event + coalesce(
          (SELECT sum(events) FROM journal WHERE journal.queue = q.queue AND journal.number >= q.journal_from), 0
        ) || ' ' || q.paused || ' ' || q.limited_until || ' ' || coalesce(q.max_active, -1)
          || ' ' || coalesce(q.rate_max, -1)
        FROM queues q WHERE q.name = r.name
      )
      ORDER BY n
    )
    FROM unnest(_names) WITH ORDINALITY r(name, n)
  );
END
$body$;
