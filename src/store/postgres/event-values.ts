// Results and progress in events. A large value is not copied: it stays with its job, and its event says so (`large`).
import { EVENT_VALUE_BYTES } from '../budget.js';

/** Sets `_large` to 1 for each text `said` of the rows that is large, and takes it out of the array. `which`: those that may be left out. */
export const leaveOutLarge = (texts: string, rows: string, which = '') =>
  `SELECT array_agg(CASE WHEN ${which} octet_length(said) > ${EVENT_VALUE_BYTES} THEN NULL ELSE said END ORDER BY n),
        CASE WHEN bool_or(${which} octet_length(said) > ${EVENT_VALUE_BYTES}) THEN
          array_agg(CASE WHEN ${which} octet_length(said) > ${EVENT_VALUE_BYTES} THEN 1 END ORDER BY n) END
        INTO ${texts}, _large FROM ${rows};`;

export const valueFields = (field: string, texts: string) =>
  `CASE WHEN _large IS NULL THEN json_build_object('${field}', ${texts}) ELSE json_build_object('${field}', ${texts}, 'large', _large) END`;
