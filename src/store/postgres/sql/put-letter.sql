-- Adds the job of a message: a dead letter, or the job that a letter becomes when it is sent back. The job takes the first of its ids that is
-- free; null is a counted one. A letter whose only id is taken exists already.
-- Called by: relay.sql.
CREATE FUNCTION put_letter(_name text, _letter json) RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
  _queue int := queue_of(_name);
  _id text;
  _change journal;
  _got record;
BEGIN
  PERFORM relate(ARRAY[_queue]);
  FOR _id IN SELECT id FROM json_array_elements_text(_letter -> 'ids') id LOOP
    CONTINUE WHEN EXISTS (SELECT FROM jobs WHERE queue = _queue AND id = _id);
    _got := put_jobs(
      _queue, clock_ms(), ARRAY[_id], ARRAY[_letter ->> 'name'], ARRAY[_letter ->> 'data'], ARRAY[_letter ->> 'opts'],
      ARRAY[(_letter ->> 'priority')::int], NULL, NULL, ARRAY[(_letter ->> 'timestamp')::float8],
      CASE WHEN _letter ->> 'key' IS NOT NULL THEN ARRAY[_letter ->> 'key'] END, ARRAY[(_letter ->> 'marks')::smallint],
      ARRAY[_letter ->> 'extras'], no_change(_queue)
    );
    -- Another transaction may have added the id meanwhile.
    CONTINUE WHEN _got._made IS NOT NULL;
    _change := _got._change;
    -- include: note
    RETURN;
  END LOOP;
END
$body$;
