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
