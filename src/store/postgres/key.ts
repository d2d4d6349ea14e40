import { STATE } from './tables.js';

/** The state of a job that becomes waiting. */
export const TO_WAITING = `state = CASE WHEN lock_key IS NULL THEN ${STATE.waiting} ELSE ${STATE.keyed} END`;

/** Waiting, with a key or without; of a row that is looked up by its id, as IS_ACTIVE. */
export const WAITS = `state + 0 <= ${STATE.waiting}`;

/** Records freed keys. `keys` is an array that may be null. */
export const freeKeys = (keys: string) => `
  IF ${keys} IS NOT NULL THEN
    INSERT INTO freed_keys (queue, lock_key) SELECT _queue, key FROM (SELECT DISTINCT key FROM unnest(${keys}) key WHERE key IS NOT NULL) freed;
  END IF;`;

export const ANY_KEYED = `((SELECT ord FROM jobs WHERE queue = _queue AND state = ${STATE.keyed} ORDER BY priority, ord LIMIT 1) IS NOT NULL
    OR (SELECT number FROM freed_keys WHERE queue = _queue ORDER BY number LIMIT 1) IS NOT NULL)`;
export const ANY_BEHIND = `(SELECT ord FROM jobs WHERE queue = _queue AND state = ${STATE.behind} ORDER BY priority, ord LIMIT 1) IS NOT NULL`;
