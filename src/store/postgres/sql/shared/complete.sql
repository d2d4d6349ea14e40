-- Completes the jobs of _ids, if all are plain and stay, and _session owns them. Sets _finished, how many that were and, of several, _done: which.
-- If some are not plain, it completes none: otherwise the jobs of the call would be locked in two passes, and not in the order of their ids.
-- Rows are written, and so locked, in the order of the ids. A row that another transaction has just written may be left out: the ordinary
-- path (carry-out.sql) finds it.
-- States: 3 active.
IF _many = 1 THEN
  UPDATE jobs j
  SET ord = nextval('places') + 1, returnvalue = _texts[1],
    -- include: completed
  WHERE j.queue = _queue AND j.id = _ids[1] AND j.state + 0 = 3 AND j.session = _session AND j.fence = _fences[1] AND
    -- include: plain
  ;
  GET DIAGNOSTICS _finished = ROW_COUNT;
ELSE
  _base := nextval('places');
  WITH outcomes AS (
    -- include: outcomes-by-id
  ), o AS MATERIALIZED (
    SELECT o.*, held.at FROM outcomes o,
      LATERAL (
        SELECT ctid AS at FROM jobs j
        WHERE j.queue = _queue AND j.id = o.id AND j.state + 0 = 3 AND j.session = _session AND j.fence = o.fence AND
          -- include: plain
        OFFSET 0
      ) held
  ), moved AS (
    UPDATE jobs j
    SET ord = _base + o.n, returnvalue = o.said,
      -- include: completed
    FROM o WHERE (SELECT count(*) FROM o) = _many AND j.ctid = o.at AND j.state + 0 = 3 AND j.session = _session AND j.fence = o.fence AND
      -- include: plain
    RETURNING o.n
  )
  SELECT array_agg(n ORDER BY n), count(*) INTO _done, _finished FROM moved;
END IF;
