-- Records the event of a removal that found nothing. Processes of earlier versions also call it after they removed jobs by their ids.
-- Called by: remove-listed.sql.
CREATE FUNCTION tell_cleaned(_name text, _count int) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _queue int := (SELECT queue FROM queues WHERE name = _name);
  _change journal := no_change(_queue);
BEGIN
  IF _queue IS NOT NULL THEN
    _change.events := 1;
    _change.body := event('cleaned', NULL, json_build_object('count', _count));
    -- include: note
    -- include: fold-sometimes
  END IF;
  RETURN '[]';
END
$body$;
