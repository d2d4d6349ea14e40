-- Creates the sequence of a queue's job ids. Runs with the rights of the schema's owner, so that a role that may only use the tables can
-- create new queues.
-- Called by: queue-of.sql.
CREATE FUNCTION make_counter(_queue int) RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $body$
BEGIN
  PERFORM FROM queues WHERE queue = _queue;
  IF NOT FOUND THEN RETURN; END IF;
  EXECUTE format('CREATE SEQUENCE ids_%s', _queue);
  -- A role that may use the schema may use the queue, whichever role came first.
  EXECUTE format('GRANT ALL ON SEQUENCE ids_%s TO PUBLIC', _queue);
END
$body$;
