-- Writes the letter of _job, whose run has failed for good. Its id is that of `letterId` in job/dead-letter.ts, its extras hold the origin.
INSERT INTO outbox (queue, to_queue, body)
SELECT _queue, extras ->> 'l', json_build_object(
  'kind', 'letter', 'ids', ARRAY[name || ':' || _job.id || ':' || _job.run], 'name', _job.name, 'data', _job.data, 'opts', _job.opts,
  'timestamp', _job.timestamp, 'priority', 0, 'marks', 0, 'extras', json_build_object(
    'o', json_strip_nulls(
      json_build_object(
        'queue', name, 'id', _job.id, 'failedReason', _job.failed_reason, 'attemptsMade', _job.attempts_made, 'failedOn',
        _job.finished_on, 'priority', _job.priority, 'lockKey', _job.lock_key, 'group', extras ->> 'g', 'deadLetter', extras ->> 'l'
      )
    )
  )
)::text
FROM queues, LATERAL (SELECT _job.extras::json AS extras) e WHERE queue = _queue;
PERFORM set_config('holdfast.sent', '1', true);
