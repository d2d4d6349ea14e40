-- Pauses or resumes a queue.
-- Called by: control.ts.
CREATE FUNCTION pause(_name text, _paused boolean) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _queue int := queue_of(_name);
  _change journal := no_change(_queue);
BEGIN
  UPDATE queues SET paused = _paused WHERE queue = _queue AND paused <> _paused;
  IF FOUND THEN
    _change.events := 1;
    _change.body := event(CASE WHEN _paused THEN 'paused' ELSE 'resumed' END, NULL);
    -- include: note
  END IF;
  RETURN 'null';
END
$body$;
