-- Locks the next groups of the ring, and appends them to the lists. Of each it counts one waiting job more than turns come to it, if each of
-- them has enough. _caps: the turns that a group may have. _groups, _jobs: how many groups have a turn, and how many turns they have.
-- States: -2 grouped, 0 keyed.
SELECT count(*) AS many, array_agg(key) AS keys, array_agg(turn) AS turns, array_agg(active) AS active,
  array_agg(CASE WHEN paused THEN 0 ELSE max_active END) AS max_active, array_agg(rate_max) AS rate_max,
  array_agg(CASE WHEN window_ends > _now THEN window_used ELSE 0 END) AS used
INTO _locked
FROM (
  SELECT * FROM groups
  WHERE queue = _queue AND turn IS NOT NULL AND place AND rests_until IS NULL AND key <> ALL (_keys)
    AND (turn, key) >= (_from, '') AND (xmax = 0 OR untouched(xmax))
  ORDER BY turn, key LIMIT _room FOR UPDATE SKIP LOCKED
) s;
_rounds := coalesce(_rounds, ceil(_room::float8 / greatest(1, _locked.many)));
-- In a statement after the locks: a change of the limits holds them too.
SELECT array_agg(waits) AS waits, array_agg(cap) AS caps, count(*) FILTER (WHERE least(waits, cap) > 0) AS groups,
  coalesce(sum(least(waits, cap, _rounds)), 0) AS jobs
INTO _one
FROM (
  SELECT w.waits, greatest(0, least(
    coalesce(o.max_active, q.group_max, 'infinity') - o.active, coalesce(o.rate_max, q.group_rate_max, 'infinity') - o.used, _room
  ))::bigint AS cap
  FROM queues q,
    unnest(_locked.keys, _locked.active, _locked.max_active, _locked.rate_max, _locked.used) o(key, active, max_active, rate_max, used),
    LATERAL (
      SELECT count(*) AS waits FROM (
        SELECT FROM jobs WHERE queue = _queue AND lock_key = o.key AND lock_key IS NOT NULL AND state <= 0 AND state + 0 = -2
        ORDER BY priority, ord LIMIT _rounds + 1
      ) s
    ) w
  WHERE q.queue = _queue
) found;
_from := _locked.turns[_locked.many];
_keys := _keys || _locked.keys;
_begins := _begins || _locked.turns;
_waits := _waits || _one.waits;
_caps := _caps || _one.caps;
_groups := _groups + _one.groups;
_jobs := _jobs + _one.jobs;
