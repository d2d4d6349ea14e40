-- Sets the variables of dead-variables.sql. If the queue has no row, nothing is skipped.
IF NOT _whole THEN
  SELECT coalesce(max(priorities), '{}'), coalesce(max(heads), '{}'), coalesce(max(head_keyed), 0), coalesce(max(head_freed), 0)
  INTO _priorities, _heads, _head_keyed, _head_freed FROM dead_ranges WHERE queue = _queue;
END IF;
