-- Returns a letter for each outcome of a settle: done, missing, lost, owned still, or cancelled (the job is to fail instead). Outcomes that are not in _done are judged by what is
-- there now, as if they came one after the other. A job that is owned still was locked after another transaction had written to it, or an
-- earlier outcome of the call was refused: the next statement can write to it.
-- Outcomes that children refuse (outcome-refusal.sql) keep their letters: _refused are those of the pass before, _before its letters.
-- Called by: carry-out.sql.
-- States: 3 active, 4 completed, 5 failed.
-- MARK.parent = 4
-- MARK.cancelled = 256
CREATE FUNCTION outcome_results(
  _queue int, _kinds text[], _ids text[], _owners text[], _fences bigint[], _done bigint[],
  _texts text[], _refused bigint[], _before text
) RETURNS text LANGUAGE plpgsql AS $body$
BEGIN
  RETURN (
    SELECT string_agg(
      CASE WHEN o.n = ANY (_done) THEN 'd' WHEN o.n = ANY (_refused) THEN substr(_before, o.n::int, 1) WHEN j.id IS NULL THEN 'm'
        WHEN j.state + 0 = 3 AND j.session = o.owner AND j.fence = o.fence THEN coalesce(
          CASE WHEN j.marks & 4 > 0 OR o.kind = 'children' THEN outcome_refusal(_queue, o.id, o.kind, o.said) END,
          CASE WHEN j.marks & 256 > 0 AND o.kind NOT IN ('completed', 'failed') THEN 'c' ELSE 'o' END
        )
        WHEN j.state = CASE o.kind WHEN 'completed' THEN 4 WHEN 'failed' THEN 5 END AND j.session = o.owner AND j.fence = o.fence THEN 'd'
        ELSE 'l' END, ''
      ORDER BY o.n
    )
    FROM unnest(_kinds, _ids, _owners, _fences, _texts) WITH ORDINALITY o(kind, id, owner, fence, said, n)
    LEFT JOIN LATERAL (SELECT * FROM jobs j WHERE j.queue = _queue AND j.id = o.id AND true OFFSET 0) j ON true
  );
END
$body$;
