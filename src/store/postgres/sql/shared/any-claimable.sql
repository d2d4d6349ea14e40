-- Sets _open: whether there is a job that a claim may take, where jobs wait behind their keys or in groups. One in ten of these claims also
-- searches the ranges that seemed dead.
-- States: 1 waiting.
_open :=
  -- include: any-keyed-alive
  OR (
    SELECT ord FROM jobs WHERE queue = _queue AND state = 1 AND priority = 0 AND ord < 0 ORDER BY priority, ord LIMIT 1
  ) IS NOT NULL OR (
    SELECT ord FROM jobs WHERE queue = _queue AND state = 1 AND priority = 0 AND ord >= _row.head_waiting
    ORDER BY priority, ord LIMIT 1
  ) IS NOT NULL
  OR (SELECT ord FROM jobs WHERE queue = _queue AND state = 1 AND priority > 0 ORDER BY priority, ord LIMIT 1) IS NOT NULL
  OR (random() < 0.1 AND EXISTS (SELECT FROM dead_ranges WHERE queue = _queue)) OR _row.grouped AND (
    (SELECT number FROM group_notes WHERE queue = _queue ORDER BY number LIMIT 1) IS NOT NULL OR (
      SELECT turn FROM groups WHERE queue = _queue AND turn IS NOT NULL AND place AND rests_until IS NULL ORDER BY turn, key LIMIT 1
    ) IS NOT NULL OR (
      SELECT rests_until FROM groups WHERE queue = _queue AND rests_until IS NOT NULL AND rests_until <= _now
      ORDER BY rests_until LIMIT 1
    ) IS NOT NULL
  );
