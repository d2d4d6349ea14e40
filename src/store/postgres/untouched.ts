// SKIP LOCKED waits all the same, in one case: a row that somebody has changed, who commits at the very moment in which it is looked at, and
// that the next in line has locked by then. The server follows it to its new version and waits there. Whoever waits so holds rows that the
// other one may be waiting for, so that two verbs with a sound order of locks met in a deadlock (once in 40 runs of a storm, on a
// machine with more to do than cores). Rows that somebody is at are therefore left out before the server tries to lock them.
import { expression } from './sql-function.js';

/** Of a row of `jobs` that is locked with SKIP LOCKED. Where locks may be shared, `xmax` may be something else. */
export const UNTOUCHED = '(xmax = 0 OR untouched(xmax))';

export const UNTOUCHED_FUNCTIONS =
  // `xmax` is who changed or locked the row last, as the lower half of a number of which the function that knows wants all.
  expression(
    'untouched(_xmax xid)',
    'boolean',
    'VOLATILE',
    `_xmax = pg_current_xact_id()::xid OR pg_xact_status(
       (pg_current_xact_id()::text::bigint + age(pg_current_xact_id()::xid) - age(_xmax))::text::xid8) IS DISTINCT FROM 'in progress'`,
  );
