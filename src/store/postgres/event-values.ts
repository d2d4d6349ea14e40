// Results and progress in events. A large value is not copied into the event: the value stays with its job, and the event has the field
// `large`.
import { EVENT_VALUE_BYTES } from '../budget.js';

/**
 * Sets `_large` to 1 for each large text `said` of the rows, and removes that text from the array. `which`: the condition for texts that
 * may be removed.
 */
export const leaveOutLarge = (texts: string, rows: string, which = '') =>
  `SELECT array_agg(CASE WHEN ${which} octet_length(said) > ${EVENT_VALUE_BYTES} THEN NULL ELSE said END ORDER BY n),
        CASE WHEN bool_or(${which} octet_length(said) > ${EVENT_VALUE_BYTES}) THEN
          array_agg(CASE WHEN ${which} octet_length(said) > ${EVENT_VALUE_BYTES} THEN 1 END ORDER BY n) END
        INTO ${texts}, _large FROM ${rows};`;

export const valueFields = (field: string, texts: string) =>
  `CASE WHEN _large IS NULL THEN json_build_object('${field}', ${texts}) ELSE json_build_object('${field}', ${texts}, 'large', _large) END`;
