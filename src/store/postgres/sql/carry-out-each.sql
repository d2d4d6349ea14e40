-- Applies outcomes one by one, as carry_out does at once. Calls with delays that record steps need it: an outcome is judged after those before
-- it.
-- Called by: carry-out.sql.
CREATE FUNCTION carry_out_each(
  _queue int, _clock float8, _kinds text[], _ids text[], _owners text[], _fences bigint[], _texts text[],
  _stacks text[], _delays float8[], _lifos boolean[], _keep_counts float8[], _keep_ages float8[],
  INOUT _change journal, OUT _results text, OUT _freed boolean, _grouped boolean
) RETURNS record LANGUAGE plpgsql AS $body$
DECLARE
  _locked text[];
  _sleeps boolean;
  _letter text;
  _got record;
BEGIN
  _results := '';
  _freed := false;
  -- include: lock-jobs
  FOR _n IN 1 .. cardinality(_ids) LOOP
    _sleeps := _kinds[_n] = 'sleep';
    _letter := CASE WHEN _sleeps THEN record_sleep(_queue, _ids[_n], _owners[_n], _fences[_n], _texts[_n]::json) END;
    IF _letter IS NULL THEN
      _got := carry_out(
        _queue, _clock, ARRAY[CASE WHEN _sleeps THEN 'delay' ELSE _kinds[_n] END], ARRAY[_ids[_n]], ARRAY[_owners[_n]],
        ARRAY[_fences[_n]], ARRAY[CASE WHEN _sleeps THEN _texts[_n]::json ->> 2 ELSE _texts[_n] END], ARRAY[_stacks[_n]],
        ARRAY[_delays[_n]], ARRAY[_lifos[_n]], ARRAY[_keep_counts[_n]], ARRAY[_keep_ages[_n]], _change, _grouped
      );
      _change := _got._change;
      _letter := _got._results;
      _freed := _freed OR _got._freed;
    END IF;
    _results := _results || _letter;
  END LOOP;
END
$body$;
