-- Records a group of outcomes of one kind: counts, events, and retention of jobs that finished before.
-- Called by: carry-out.sql.
-- States: 4 completed, 5 failed.
CREATE FUNCTION book(
  _queue int, _clock float8, _kind text, _jobs bigint, _plain bigint, _kept bigint, _most float8, _age float8,
  _ids text[], _said text[], _delays float8[], _attempts int[], INOUT _change journal,
  _removed boolean[] DEFAULT NULL
) RETURNS journal LANGUAGE plpgsql AS $body$
DECLARE
  _body text;
  _large int[];
  _dues bigint[];
  _ended text[];
BEGIN
  IF _kind IN ('retry later', 'delay') THEN
    SELECT array_agg(ceil(_clock + delay)::bigint ORDER BY n) INTO _dues FROM unnest(_delays) WITH ORDINALITY d(delay, n);
  END IF;
  _change.active := _change.active - _jobs;
  _change.events := _change.events + _jobs;
  CASE _kind
    WHEN 'completed' THEN
      -- include: tell-completed
    WHEN 'failed' THEN
      _body := event('failed', _ids, json_build_object('failedReason', _said));
      -- Those without a number have attempts left.
      SELECT array_agg(id ORDER BY n), array_agg(attempts ORDER BY n) INTO _ended, _attempts
      FROM unnest(_ids, _attempts) WITH ORDINALITY o(id, attempts, n) WHERE attempts IS NOT NULL;
      IF _ended IS NOT NULL THEN
        _change.events := _change.events + cardinality(_ended);
        _body := _body || ',' || event('retries-exhausted', _ended, json_build_object('attemptsMade', _attempts));
      END IF;
    WHEN 'retry' THEN _body := event('waiting', _ids, json_build_object('prev', 'active', 'failedReason', _said));
    WHEN 'retry later' THEN _body := event('delayed', _ids, json_build_object('delay', _dues, 'failedReason', _said));
    WHEN 'delay' THEN _body := event('delayed', _ids, json_build_object('delay', _dues));
    WHEN 'release', 'return' THEN _body := event('waiting', _ids, '{"prev":"active"}');
    WHEN 'children' THEN _body := event('waiting-children', _ids, '{"prev":"active"}');
  END CASE;
  _change.body := concat_ws(',', _change.body, _body);
  IF _kind = 'completed' THEN
    _change.finishes := _change.finishes + _jobs;
    _change.completions := _change.completions + _jobs;
    _change.completed := _change.completed + _kept;
    IF _most IS NOT NULL OR _age IS NOT NULL THEN
      _change.completed := _change.completed - retain(_queue, 4::smallint, _change.completed, _most, _clock - _age);
    END IF;
  ELSIF _kind = 'failed' THEN
    _change.finishes := _change.finishes + _jobs;
    _change.failures := _change.failures + _jobs;
    _change.failed := _change.failed + _kept;
    IF _most IS NOT NULL OR _age IS NOT NULL THEN
      _change.failed := _change.failed - retain(_queue, 5::smallint, _change.failed, _most, _clock - _age);
    END IF;
  ELSIF _kind IN ('retry later', 'delay') THEN
    _change.delayed := _change.delayed + _jobs;
  ELSIF _kind = 'children' THEN
    _change.parents := coalesce(_change.parents, 0) + _jobs;
  ELSE
    _change.waiting := _change.waiting + _plain;
    _change.prioritized := _change.prioritized + _jobs - _plain;
  END IF;
END
$body$;
