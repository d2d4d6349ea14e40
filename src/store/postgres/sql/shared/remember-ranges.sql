-- Writes the row of the queue.
INSERT INTO dead_ranges
VALUES (_queue, _priorities, _heads, _head_keyed, _head_freed, _place, _freed, _journal_from, _number, _writers)
ON CONFLICT (queue) DO UPDATE
SET (priorities, heads, head_keyed, head_freed, place, freed, journal_from, journal_number, journal_writers) = (
  _priorities, _heads, _head_keyed, _head_freed, _place, _freed, _journal_from, _number, _writers
);
