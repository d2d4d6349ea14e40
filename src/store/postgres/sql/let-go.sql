-- Releases named locks, and gives up places of waiters.
-- Called by: named-lock.ts.
CREATE FUNCTION let_go(_name text, _names text[], _tokens text[]) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _queue int := (SELECT queue FROM queues WHERE name = _name);
  _now bigint;
  _replies boolean[] := '{}';
  _freed boolean;
  _one record;
BEGIN
  IF _queue IS NULL THEN RETURN to_json(array_fill(false, ARRAY[cardinality(_names)])); END IF;
  PERFORM lock_names(_queue, _names);
  _now := floor(clock_ms());
  FOR _one IN SELECT * FROM unnest(_names, _tokens) WITH ORDINALITY o(name, token, n) LOOP
    UPDATE named SET token = NULL, session = NULL WHERE queue = _queue AND name = _one.name AND token = _one.token;
    _freed := FOUND;
    DELETE FROM lock_places WHERE queue = _queue AND name = _one.name AND token = _one.token AND kept_until > _now;
    _replies := _replies || (_freed OR FOUND);
  END LOOP;
  DELETE FROM named WHERE queue = _queue AND name = ANY (_names) AND token IS NULL;
  RETURN to_json(_replies);
END
$body$;
