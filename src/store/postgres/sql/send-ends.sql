-- Does what the end of jobs means for jobs of other queues: it writes messages to their parents, and letters. The jobs are no longer doomed: a
-- retry must not fail by what happened before. _gone: which of the jobs are removed on finishing; they are deleted here. _fences: of the
-- runs that ended, if the rows no longer have them.
-- The caller has finished the jobs in this transaction.
-- Called by: carry-out.sql, hand-back.sql.
-- States: 5 failed.
-- MARK.child = 2
-- MARK.doomed = 64
-- MARK.letter = 128
CREATE FUNCTION send_ends(
  _queue int, _ids text[], _gone boolean[] DEFAULT NULL, _fences bigint[] DEFAULT NULL
) RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
  _job record;
  _kin json[];
  _rows tid[];
BEGIN
  FOR _job IN
    SELECT j.*, coalesce(j.fence, o.fence) AS run, o.gone FROM unnest(_ids, _gone, _fences) o(id, gone, fence),
      LATERAL (SELECT * FROM jobs j WHERE j.queue = _queue AND j.id = o.id AND true OFFSET 0) j
  LOOP
    IF _job.marks & 64 > 0 THEN
      UPDATE jobs SET marks = marks & ~64, extras = NULLIF((extras::jsonb - 'x')::text, '{}') WHERE queue = _queue AND id = _job.id;
    END IF;
    IF _job.marks & 2 > 0 THEN
      _kin := _kin || kin_of(_job.id, _job.extras, _job.state, _job.returnvalue, _job.failed_reason);
    END IF;
    IF _job.marks & 128 > 0 AND _job.state + 0 = 5 THEN
      -- include: send-letter
    END IF;
  END LOOP;
  IF _kin IS NOT NULL THEN PERFORM send_to_parents(_queue, to_json(_kin), false); END IF;
  _rows := ARRAY(
    SELECT j.at FROM unnest(_ids, _gone) o(id, gone),
      LATERAL (SELECT ctid AS at FROM jobs j WHERE j.queue = _queue AND j.id = o.id AND true OFFSET 0) j
    WHERE o.gone
  );
  IF cardinality(_rows) > 0 THEN PERFORM drop_jobs(_queue, _rows); END IF;
END
$body$;
