-- Grants the locks of the rows of `next` that have a fence, in their order. Rows without a fence did not fit into the reply. They stay
-- locked until the commit. That is soon: a claim moves no payloads, and its caller requests fewer jobs the next time (fitting.ts).
-- States: 3 active.
,
taken AS (
  UPDATE jobs
  SET state = 3, session = _session, fence = next.fence, claim_seq = _seq, processed_on = floor(_clock), processed_by = _by,
    ends_at = ceil(_clock + _timed), timed = _timed IS NOT NULL, attempts_started = attempts_started + 1
  FROM next WHERE jobs.ctid = next.at AND next.fence IS NOT NULL
  RETURNING
    -- include: claimed-columns
    , next.size
)
SELECT count(*), count(*) FILTER (WHERE priority = 0),
  -- include: claimed-arrays
  , event('active', array_agg(id)), coalesce(sum(size), 0), EXISTS (SELECT FROM next WHERE fence IS NULL)
INTO _taken, _plain, _rows, _body, _bytes, _cut FROM (SELECT * FROM taken ORDER BY fence) taken;
IF _taken > 0 THEN
  _jobs := concat_ws(',', _jobs, _rows);
  _change.active := _change.active + _taken;
  _change.waiting := _change.waiting - _plain;
  _change.prioritized := _change.prioritized - _taken + _plain;
  _change.events := _change.events + _taken;
  _change.body := concat_ws(',', _change.body, _body);
END IF;
