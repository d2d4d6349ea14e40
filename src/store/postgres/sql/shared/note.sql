-- Writes _change to the journal.
IF _change.events > 0 THEN
  INSERT INTO journal (
    queue, waiting, prioritized, delayed, active, completed, failed, finishes, events, body, minute, completions, failures, parents
  )
  VALUES (
    _change.queue, _change.waiting, _change.prioritized, _change.delayed, _change.active, _change.completed, _change.failed,
    _change.finishes, _change.events, _change.body, _change.minute, _change.completions, _change.failures, _change.parents
  );
END IF;
