-- Locks the rows of the groups that come first in line, as many as the claim may need. Sets _ring. The numbers of the turns are drawn after the
-- locks: a claim that began earlier and locks later must not give lower numbers. `fence`: the jobs of these turns get higher ones. `rated`: a
-- group has a rate of its own. `near`: one of _groups, whose jobs have ended, may be so near its limit that it gets fewer turns before its
-- places are free.
SELECT count(*) AS many, _count - _all AS asked, nextval('places') AS base, nextval('fences') AS fence, array_agg(key) AS keys,
  array_agg(active) AS active, array_agg(max_active) AS max_active, coalesce(bool_or(rate_max IS NOT NULL), false) AS rated, (
    SELECT bool_or(g.active + _count > coalesce(g.max_active, _look.group_max)) FROM unnest(_groups) o(key),
      LATERAL (SELECT active, max_active FROM groups g WHERE g.queue = _queue AND g.key = o.key OFFSET 0) g
  ) AS near
INTO _ring
FROM (
  SELECT key, active, CASE WHEN paused THEN 0 ELSE max_active END AS max_active, rate_max FROM groups
  WHERE queue = _queue AND turn IS NOT NULL AND place AND rests_until IS NULL AND (xmax = 0 OR untouched(xmax))
  ORDER BY turn, key LIMIT _count - _all FOR UPDATE SKIP LOCKED
) s;
