-- Sends notifications to other processes, with the commit.
-- Called by: driver/transaction.ts, wake.ts.
CREATE FUNCTION notify_changes(_channel text, _payloads text[]) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
BEGIN
  PERFORM pg_notify(_channel, payload) FROM unnest(_payloads) payload;
  RETURN 'null';
END
$body$;
