// The tables, as a list of migrations (sql/schema/). Never change a migration that was released: append the next one. The functions that
// work on the tables are in sql/; every migration recreates them (schema.ts).
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

/** An empty migration: it only recreates the functions. */
const NEW_FUNCTIONS = '';

const migration = (name: string): string => sqlOf(`schema/${name}`);

export const MIGRATIONS: readonly string[] = [
  migration('first'),
  migration('keys-and-names'),
  migration('graces'),
  NEW_FUNCTIONS,
  migration('fewer-indexes'),
  NEW_FUNCTIONS,
  migration('revisions'),
  migration('dead-ranges'),
  migration('callers-by-age'),
  migration('losses'),
  migration('journal-from'),
  NEW_FUNCTIONS,
  NEW_FUNCTIONS,
  NEW_FUNCTIONS,
  migration('marks'),
  migration('schedules'),
  migration('rates'),
  migration('groups'),
  migration('families'),
  migration('steps'),
  NEW_FUNCTIONS,
  NEW_FUNCTIONS,
  migration('places-by-token'),
];

/**
 * Processes that know this many migrations can work on the newest schema, beside processes that know all of them. So migrations only add,
 * and functions keep their names, their parameters (new ones come last and have defaults) and what they return. A migration that breaks
 * this rule sets the constant to its own number; older processes then refuse the schema.
 */
export const READABLE_SINCE = 6;
