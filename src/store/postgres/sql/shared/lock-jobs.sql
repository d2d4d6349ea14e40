-- Locks the jobs of _ids that exist, in the order of their ids. Sets _locked, their ids. A job that is added later is missing for this call:
-- another call may move it at any time.
_locked := ARRAY(
  SELECT j.id FROM (SELECT DISTINCT id FROM unnest(_ids) id ORDER BY id) o,
    LATERAL (SELECT id FROM jobs WHERE queue = _queue AND id = o.id FOR UPDATE) j
);
