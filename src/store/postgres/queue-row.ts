// Finds or creates the row of a queue, and reads its counts.
import { journalOf } from './journal-rows.js';
import { expression, step, verb } from './sql-function.js';

export const QUEUE_FUNCTIONS =
  // Returns the queue, and creates it on first use. Its job ids come from a sequence of its own. With a counter in the row, all producers
  // of the queue would wait for one another's commits. They would also wait for every open transaction in which a user adds a job.
  step(
    'queue_of(_name text)',
    'int',
    `
DECLARE
  _queue int;
BEGIN
  LOOP
    SELECT queue INTO _queue FROM queues WHERE name = _name;
    IF FOUND THEN RETURN _queue; END IF;
    INSERT INTO queues (name) VALUES (_name) ON CONFLICT (name) DO NOTHING RETURNING queue INTO _queue;
    IF FOUND THEN
      PERFORM make_counter(_queue);
      RETURN _queue;
    END IF;
  END LOOP;
END`,
  ) +
  // Runs with the rights of the schema's owner, so that a role that may only use the tables can create new queues.
  `CREATE FUNCTION make_counter(_queue int) RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $body$
BEGIN
  PERFORM FROM queues WHERE queue = _queue;
  IF NOT FOUND THEN RETURN; END IF;
  EXECUTE format('CREATE SEQUENCE ids_%s', _queue);
  -- A role that may use the schema may use the queue, whichever role came first.
  EXECUTE format('GRANT ALL ON SEQUENCE ids_%s TO PUBLIC', _queue);
END$body$;\n` +
  verb(
    'ensure_queue(_name text)',
    'text',
    `
BEGIN
  PERFORM queue_of(_name);
  RETURN 'null';
END`,
  ) +
  // The store's clock: epoch ms with fractions. Callers round the present down and expiries up, so that nothing expires early.
  expression('clock_ms()', 'double precision', 'VOLATILE', `date_part('epoch', clock_timestamp()) * 1000`) +
  // Returns exact counts from one snapshot, without reading jobs.
  step(
    'counts_of(_queue int, OUT waiting bigint, OUT prioritized bigint, OUT delayed bigint, OUT active bigint, OUT completed bigint, OUT failed bigint)',
    'record',
    `
BEGIN
  SELECT q.waiting + coalesce(j.waiting, 0), q.prioritized + coalesce(j.prioritized, 0), q.delayed + coalesce(j.delayed, 0),
    q.active + coalesce(j.active, 0), q.completed + coalesce(j.completed, 0), q.failed + coalesce(j.failed, 0)
  INTO waiting, prioritized, delayed, active, completed, failed
  FROM queues q, LATERAL (
    SELECT sum(journal.waiting) waiting, sum(journal.prioritized) prioritized, sum(journal.delayed) delayed,
      sum(journal.active) active, sum(journal.completed) completed, sum(journal.failed) failed
    FROM ${journalOf('q')}
  ) j WHERE q.queue = _queue;
END`,
  );
