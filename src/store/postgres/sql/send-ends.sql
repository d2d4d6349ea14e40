-- Does what the end of jobs means for jobs of other queues: it writes messages to their parents, and letters. The jobs are no longer doomed or
-- cancelled: a retry must not fail by what happened before. A cancelled job sends no letter. _gone: which of the jobs are removed on finishing; they are deleted here. _fences: of the
-- runs that ended, if the rows no longer have them.
-- The caller has finished the jobs in this transaction.
-- Called by: carry-out.sql, hand-back.sql.
-- States: 5 failed.
-- MARK.child = 2
-- MARK.doomed = 64
-- MARK.letter = 128
-- MARK.cancelled = 256
CREATE FUNCTION send_ends(
  _queue int, _ids text[], _gone boolean[] DEFAULT NULL, _fences bigint[] DEFAULT NULL
) RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
  _job record;
  _kin json;
  _rows tid[];
BEGIN
  SELECT json_agg(kin_of(j.id, j.extras, j.state, j.returnvalue, j.failed_reason)) INTO _kin FROM unnest(_ids) o(id),
    LATERAL (SELECT * FROM jobs j WHERE j.queue = _queue AND j.id = o.id AND j.marks & 2 > 0 OFFSET 0) j;
  IF _kin IS NOT NULL THEN PERFORM send_to_parents(_queue, _kin, false); END IF;
  FOR _job IN
    SELECT j.*, coalesce(j.fence, o.fence) AS run FROM unnest(_ids, _fences) o(id, fence),
      LATERAL (SELECT * FROM jobs j WHERE j.queue = _queue AND j.id = o.id AND j.marks & (64 | 128 | 256) > 0 OFFSET 0) j
  LOOP
    IF _job.marks & (64 | 256) > 0 THEN
      UPDATE jobs SET marks = marks & ~(64 | 256), extras = NULLIF((extras::jsonb - 'x' - 'c')::text, '{}')
      WHERE queue = _queue AND id = _job.id;
    END IF;
    IF _job.marks & (128 | 256) = 128 AND _job.state + 0 = 5 THEN
      -- include: send-letter
    END IF;
  END LOOP;
  IF true = ANY (_gone) THEN
    _rows := ARRAY(
      SELECT j.at FROM unnest(_ids, _gone) o(id, gone),
        LATERAL (SELECT ctid AS at FROM jobs j WHERE j.queue = _queue AND j.id = o.id AND true OFFSET 0) j
      WHERE o.gone
    );
    PERFORM drop_jobs(_queue, _rows);
  END IF;
END
$body$;
