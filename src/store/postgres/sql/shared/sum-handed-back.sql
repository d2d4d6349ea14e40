-- Sums up the rows of `moved` in _sum.
-- States: 1 waiting, 5 failed.
SELECT count(*) AS jobs, count(*) FILTER (WHERE state + 0 <= 1 AND priority = 0) AS plain, array_agg(id) AS ids,
  array_agg(lock_key) FILTER (WHERE lock_key IS NOT NULL AND member IS NULL) AS keys,
  array_agg(member) FILTER (WHERE member IS NOT NULL) AS groups, array_agg(member) FILTER (WHERE state + 0 <= 1) AS entered,
  array_agg(id) FILTER (WHERE state + 0 <= 1) AS waiting,
  array_agg(id) FILTER (WHERE state = 5) AS failed, array_agg(failed_reason) FILTER (WHERE state = 5) AS reasons,
  array_agg(loss) AS losses,
  array_agg(loss) FILTER (WHERE state + 0 <= 1) AS waiting_losses, array_agg(loss) FILTER (WHERE state = 5) AS failed_losses,
  array_agg(id) FILTER (WHERE marked) AS marked, array_agg(extras) FILTER (WHERE marked) AS extras,
  array_agg(id) FILTER (WHERE kin) AS kin, array_agg(fence) FILTER (WHERE kin) AS fences
INTO _sum FROM (SELECT * FROM moved ORDER BY n) m;
