-- Writes the rows of the groups, and the numbers of the queue, unless another claim is about to write these. Where jobs were left out, the
-- jobs that were taken are counted by group. If other transactions hold groups in line, the claim should be retried soon.
-- States: 3 active.
-- MARK.key = 1
_soon := _soon OR _taken < _turn._dealt AND NOT _cut;
IF _taken < _asked AND NOT _soon THEN
  _soon := EXISTS (
    SELECT FROM groups
    WHERE queue = _queue AND turn IS NOT NULL AND place AND rests_until IS NULL AND key <> ALL (_turn._keys) LIMIT 1
  );
END IF;
_took := _turn._took;
IF _taken < _turn._dealt THEN
  _took := ARRAY(
    SELECT (
      SELECT count(*) FROM (
        SELECT extras::json ->> 'g' AS key FROM jobs
        WHERE queue = _queue AND state = 3 AND session = _session AND claim_seq = _seq AND marks & 1 > 0 ORDER BY fence OFFSET 0
      ) j WHERE j.key = k.key
    ) FROM unnest(_turn._keys) WITH ORDINALITY k(key, n) ORDER BY n
  );
END IF;
PERFORM write_turns(
  _queue, _clock, _turn._keys, _took, _turn._turns, _turn._took, _turn._last, CASE WHEN _taken > 0 THEN _turn._plain_turn END
);
