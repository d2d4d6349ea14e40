-- Counts the jobs of _sum.failed, removes those that are not to be kept, and trims those that failed before.
-- States: 5 failed.
SELECT floor(_clock / 60000), 0, cardinality(_sum.failed) INTO _change.minute, _change.completions, _change.failures FROM queues
WHERE queue = _queue AND metric_points IS NOT NULL;
FOR _job IN
  SELECT j.* FROM unnest(_sum.failed) o(id),
    LATERAL (SELECT opts, ord, ctid AS at FROM jobs j WHERE j.queue = _queue AND j.id = o.id AND true OFFSET 0) j
  ORDER BY ord
LOOP
  _keep := keep_on_fail(_job.opts);
  IF _keep.most = 0 THEN
    _change.failed := _change.failed - drop_jobs(_queue, ARRAY[_job.at]);
  ELSIF _keep.most IS NOT NULL OR _keep.age IS NOT NULL THEN
    _change.failed := _change.failed - retain(_queue, 5::smallint, _change.failed, _keep.most, _clock - _keep.age);
  END IF;
END LOOP;
