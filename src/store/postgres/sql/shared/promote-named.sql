-- Moves the named jobs that are due to waiting.
-- States: 2 delayed.
_due := ARRAY(
  SELECT j.at FROM (SELECT id, min(n) AS n FROM unnest(_ids) WITH ORDINALITY o(id, n) GROUP BY id) o,
    LATERAL (
      SELECT ctid AS at FROM jobs j
      WHERE j.queue = _queue AND j.id = o.id AND state + 0 = 2 AND due_at <= floor(_clock) OFFSET 0
    ) j
  ORDER BY o.n
);
IF cardinality(_due) > 0 THEN _change := promote(_queue, _due, _change); END IF;
