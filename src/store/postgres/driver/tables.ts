// The tables, as a list of migrations (sql/schema.sql). Never change a migration that was released: append the next one. The functions that
// work on the tables are the other files of sql/; every migration recreates them (schema.ts).
import { sqlOf } from './sql.js';

/**
 * The numbers of `jobs.state`. Partial indexes name these numbers. `keyed` and `behind` also mean waiting, for jobs with a lock key (see
 * first_of_keys), and so does `grouped`, for jobs of groups.
 */
export const STATE = {
  grouped: -2,
  behind: -1,
  keyed: 0,
  waiting: 1,
  delayed: 2,
  active: 3,
  completed: 4,
  failed: 5,
  'waiting-children': 6,
} as const;

/** The first layout, of 0.1.0. A migration that only recreates the functions is an empty text. */
export const MIGRATIONS: readonly string[] = [sqlOf('schema/tables')];

/**
 * Processes that know this many migrations can work on the newest schema, beside processes that know all of them. So migrations only add,
 * and functions keep their names, their parameters (new ones come last and have defaults) and what they return. A migration that breaks
 * this rule sets the constant to its own number; processes of earlier versions then refuse the schema.
 */
export const READABLE_SINCE = 1;
