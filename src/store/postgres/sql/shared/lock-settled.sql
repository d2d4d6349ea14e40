-- Locks the jobs of the outcomes and those that are claimed by id, all at once, in one order.
IF _job_ids IS NOT NULL THEN
  PERFORM FROM (SELECT DISTINCT id FROM unnest(_ids || _job_ids) id ORDER BY id) o,
    LATERAL (SELECT FROM jobs WHERE queue = _queue AND id = o.id FOR UPDATE) j;
END IF;
