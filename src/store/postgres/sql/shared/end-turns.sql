-- Writes the rows of the groups, and the numbers of the queue, unless another claim is about to write these. Where jobs were left out, the
-- jobs that were taken are counted by group.
-- States: 3 active.
-- MARK.key = 1
_most := cardinality(_turn._order);
_soon := _soon OR _taken < _most AND NOT _cut;
PERFORM write_turns(
  _queue, _clock, _turn._keys,
  CASE WHEN _taken = _most THEN _turn._took ELSE ARRAY(
    SELECT (
      SELECT count(*) FROM (
        SELECT extras::json ->> 'g' AS key FROM jobs
        WHERE queue = _queue AND state = 3 AND session = _session AND claim_seq = _seq AND marks & 1 > 0 ORDER BY fence OFFSET 0
      ) j WHERE j.key = k.key
    )::int FROM unnest(_turn._keys) WITH ORDINALITY k(key, n) ORDER BY n
  ) END, _turn._turns, _turn._took, _turn._last
);
IF _taken > 0 THEN
  UPDATE groups SET turn = greatest(turn, _turn._plain_turn), last_turn = greatest(last_turn, _turn._last)
  WHERE ctid = ANY (
    ARRAY(SELECT ctid FROM groups WHERE queue = _queue AND key = '' AND (xmax = 0 OR untouched(xmax)) FOR UPDATE SKIP LOCKED)
  );
END IF;
