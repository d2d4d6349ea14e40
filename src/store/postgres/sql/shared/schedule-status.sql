-- Sets _status of the change _n of the schedule _row, as far as it is known before its slot is put; _started: whether the next job has
-- started; null: there is no next job; _keeps: whether it stays the next job.
-- States: 3 active.
_started := (SELECT state + 0 = 3 OR attempts_started > 0 FROM jobs WHERE queue = _queue AND id = _row.next_job);
_keeps := _kinds[_n] = 'put' AND _jobs[_n] IS NOT NULL AND _serials[_n] AND coalesce(_row.serial AND _started, false);
_status := CASE WHEN coalesce(_row.version, 0) = 0 THEN CASE WHEN _made[_n] THEN 'done' ELSE 'missing' END
  WHEN _row.version <> _versions[_n] OR _kinds[_n] = 'advance' AND _row.state <> 'owing' THEN 'stale' ELSE 'done' END;
