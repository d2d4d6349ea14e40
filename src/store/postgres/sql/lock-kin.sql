-- Locks jobs of any queues, in the order of (queue, id), as all transactions that lock jobs of several queues do. Returns for each of them
-- whether it is locked now or does not exist. _wait: waits for jobs that other transactions hold; otherwise leaves these out.
-- Called by: link-family.sql, relay.sql.
CREATE FUNCTION lock_kin(_queues int[], _ids text[], _wait boolean) RETURNS boolean[] LANGUAGE plpgsql AS $body$
DECLARE
  _one record;
  _busy text[] := '{}';
BEGIN
  IF _wait THEN
    PERFORM FROM (SELECT DISTINCT queue, id COLLATE "C" AS id FROM unnest(_queues, _ids) o(queue, id) ORDER BY queue, id) o,
      LATERAL (SELECT FROM jobs WHERE queue = o.queue AND jobs.id = o.id FOR UPDATE) j;
    RETURN array_fill(true, ARRAY[cardinality(_ids)]);
  END IF;
  FOR _one IN SELECT DISTINCT queue, id COLLATE "C" AS id FROM unnest(_queues, _ids) o(queue, id) ORDER BY queue, id LOOP
    PERFORM FROM jobs WHERE queue = _one.queue AND id = _one.id AND (xmax = 0 OR untouched(xmax)) FOR UPDATE SKIP LOCKED;
    IF NOT FOUND AND EXISTS (SELECT FROM jobs WHERE queue = _one.queue AND id = _one.id) THEN
      _busy := _busy || (_one.queue || ' ' || _one.id);
    END IF;
  END LOOP;
  RETURN ARRAY(SELECT queue || ' ' || id <> ALL (_busy) FROM unnest(_queues, _ids) WITH ORDINALITY o(queue, id, n) ORDER BY n);
END
$body$;
