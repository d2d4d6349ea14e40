-- Sets _jobs and _more for a claim that was carried out before, or for a straggler that its caller gave up on: it may see what it got, and
-- never get more.
-- States: 3 active.
SELECT
  -- include: claimed-arrays
  , coalesce(_left > 0 AND sum(size) > 2097152, false)
INTO _jobs, _more
FROM (
  SELECT *, octet_length(data) + coalesce(octet_length(progress), 0) AS size FROM jobs
  WHERE queue = _queue AND state = 3 AND session = _session AND claim_seq = _seq ORDER BY fence
) j;
