-- Grants the locks of the rows of `waiting` in their order, as far as the reply has room beside the _used bytes. The other rows stay locked
-- until the commit. That is soon: a claim moves no payloads, and its caller requests fewer jobs the next time (fitting.ts).
-- States: -2 grouped, 3 active.
-- REPLY_BYTES = 4194304
-- MARK.next = 16
, next AS (
  SELECT at, size, CASE WHEN upto + _used <= 4194304 OR (upto = size AND _used = 0) THEN nextval('fences') END AS fence
  FROM (SELECT at, size, sum(size) OVER (ROWS UNBOUNDED PRECEDING) AS upto FROM waiting) fitting
), taken AS (
  UPDATE jobs
  SET state = 3, session = _session, fence = next.fence, claim_seq = _seq, processed_on = floor(_clock), processed_by = _by,
    ends_at = ceil(_clock + _timed), timed = _timed IS NOT NULL, attempts_started = attempts_started + 1,
    lock_key = CASE WHEN jobs.state = -2 THEN NULL ELSE lock_key END
  FROM next WHERE jobs.ctid = next.at AND next.fence IS NOT NULL
  RETURNING
    -- include: claimed-columns
    , next.size
)
SELECT count(*), count(*) FILTER (WHERE priority = 0),
  -- include: claimed-arrays
  , event('active', array_agg(id)), coalesce(sum(size), 0), EXISTS (SELECT FROM next WHERE fence IS NULL),
  array_agg(id) FILTER (WHERE marks & 16 > 0)
INTO _taken, _plain, _rows, _body, _bytes, _cut, _next FROM (SELECT * FROM taken ORDER BY fence) taken;
IF _taken > 0 THEN
  _jobs := concat_ws(',', _jobs, _rows, CASE WHEN _next IS NOT NULL THEN start_runs(_queue, _next) END);
  _change.active := _change.active + _taken;
  _change.waiting := _change.waiting - _plain;
  _change.prioritized := _change.prioritized - _taken + _plain;
  _change.events := _change.events + _taken;
  _change.body := concat_ws(',', _change.body, _body);
END IF;
