-- Locks the rows of the names. A free name has no row to lock, so it gets one until the end of the call.
-- Called by: acquire.sql, let-go.sql.
CREATE FUNCTION lock_names(_queue int, _names text[]) RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
  _one text;
BEGIN
  FOR _one IN SELECT DISTINCT name COLLATE "C" AS name FROM unnest(_names) name ORDER BY name LOOP
    LOOP
      INSERT INTO named (queue, name) VALUES (_queue, _one) ON CONFLICT DO NOTHING;
      EXIT WHEN FOUND;
      PERFORM FROM named WHERE queue = _queue AND name = _one FOR UPDATE;
      EXIT WHEN FOUND;
    END LOOP;
  END LOOP;
END
$body$;
