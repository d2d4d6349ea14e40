-- Takes up to _count jobs, of _left, on the fast paths of claim and settle. If they are too large for one reply, all of them go back, and
-- `grant_locks` takes those that fit. Summing up the sizes before jobs are taken would cost every claim 3 % of the server's time, and few
-- queues have such jobs. A job that goes back loses the start of its earlier run. Sets _next: those that are next jobs of schedules.
-- States: 1 waiting, 3 active.
-- REPLY_BYTES = 4194304
-- MARK.next = 16
IF _count = 1 AND _left > 0 THEN
  UPDATE jobs
  SET state = 3, session = _session, claim_seq = _seq, processed_on = _now, processed_by = _by, ends_at = NULL, timed = false,
    attempts_started = attempts_started + 1, fence = nextval('fences')
  WHERE ctid = (
    SELECT * FROM (
      SELECT ctid FROM jobs WHERE queue = _queue AND state = 1 AND priority = 0 AND ord >= _head AND (xmax = 0 OR untouched(xmax))
      ORDER BY ord LIMIT 1 FOR UPDATE SKIP LOCKED
    ) s
  )
  RETURNING event('active', ARRAY[id]),
    -- include: claimed-one
    , CASE WHEN marks & 16 > 0 THEN ARRAY[id] END
  INTO _active, _rows, _next;
  GET DIAGNOSTICS _taken = ROW_COUNT;
ELSIF _count > 0 AND _left > 0 THEN
  WITH next AS (
    SELECT at, nextval('fences') AS fence FROM (
      SELECT * FROM (
        SELECT ctid AS at FROM jobs
        WHERE queue = _queue AND state = 1 AND priority = 0 AND ord >= _head AND (xmax = 0 OR untouched(xmax))
        ORDER BY ord LIMIT _count FOR UPDATE SKIP LOCKED
      ) s
    ) waiting
  ), taken AS (
    UPDATE jobs
    SET state = 3, session = _session, claim_seq = _seq, processed_on = _now, processed_by = _by, ends_at = NULL, timed = false,
      attempts_started = attempts_started + 1, fence = next.fence
    FROM next WHERE jobs.ctid = next.at
    RETURNING
      -- include: claimed-columns
      , octet_length(data) + coalesce(octet_length(progress), 0) AS size
  )
  SELECT count(*),
    -- include: claimed-arrays
    , event('active', array_agg(id)), sum(size), array_agg(id) FILTER (WHERE marks & 16 > 0)
  INTO _taken, _rows, _active, _bytes, _next FROM (SELECT * FROM taken ORDER BY fence) taken;
  IF _taken = 0 OR _bytes > 4194304 THEN
    UPDATE jobs
    SET state = 1, session = NULL, fence = NULL, claim_seq = NULL, attempts_started = attempts_started - 1,
      processed_on = CASE WHEN attempts_started > 1 THEN processed_on END,
      processed_by = CASE WHEN attempts_started > 1 THEN processed_by END
    WHERE queue = _queue AND state = 3 AND session = _session AND claim_seq = _seq;
    _taken := 0;
    _bytes := 0;
    _rows := NULL;
    _next := NULL;
    _active := NULL;
  END IF;
ELSE
  _taken := 0;
END IF;
