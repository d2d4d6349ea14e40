// Loads the SQL. Each operation is a section of a file of sql/ (see ../../sections.ts): a function of the schema, or one statement.
// Statements name their parameters (:queue); the server gets numbers instead ($1). `npm run script -- postgres settle` prints what it gets.
//
// Functions are verbs, steps or expressions. Every verb is one function, so that it is one round trip and one transaction, also behind a
// pooler that assigns connections per transaction. The server also keeps the plans of a function without named statements. A verb
// includes the settings (`settings` in sql/queues.sql). A step is called by verbs under their settings, or by the store as a fast path
// under those of the connection. An expression is a function in the language SQL, which the server inlines where it is called.
//
// Rules for all of these texts:
// - Rows are locked in this order: callers, sessions, jobs in the order of their ids, schedules in the order of theirs, names. Rows locked
//   after that are taken only if no other transaction holds them.
// - Jobs are found by their ids one by one, through the primary key: LATERAL (… OFFSET 0). The planner must have no choice. With
//   statistics older than the jobs, it would turn a list of ids with an order, or a join with one, into a walk through the whole queue.
// - `state + 0` and `reaped + 0`, of a row that is looked up by its id or place, keep the planner from the index of all active jobs, or of
//   all open sessions. With statistics from a time when that index was small, the planner would choose it and walk through all of it.
// - (xmax = 0 OR untouched(xmax)): see `untouched` in sql/dead-rows.sql.
// - The journal is read from `journal_from` on, behind the rows that are surely dead (find_dead_ranges).
import { operationText, partText, replaceParameters, sectionsOf } from '../../sections.js';
import { texts } from './sql-texts.js';

export interface Statement {
  readonly text: string;
  /** The names of $1, $2 …, in the spelling of TypeScript. */
  readonly parameters: readonly string[];
}

const FUNCTION = /^CREATE FUNCTION (\w+)/m;
const SETTING = /^SET (\w+) TO (.+)$/gm;

export const sections = sectionsOf(texts);
const statements = new Map<string, Statement | undefined>();

/** Returns the text of an operation, with its includes. */
export function sqlOf(name: string): string {
  return operationText(name, sections);
}

/** Returns the statement of an operation, or undefined if the operation is a function. */
export function statementOf(name: string): Statement | undefined {
  if (!statements.has(name)) statements.set(name, load(name));
  return statements.get(name);
}

function load(name: string): Statement | undefined {
  const section = sqlOf(name);
  if (FUNCTION.test(section)) return undefined;
  const parameters: string[] = [];
  const text = replaceParameters(section, (snake) => {
    const parameter = snake.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
    if (!parameters.includes(parameter)) parameters.push(parameter);
    return `$${parameters.indexOf(parameter) + 1}`;
  });
  return { text, parameters };
}

/** Returns the call of a function. The parameter `keepCounts` is `_keep_counts` in the function. */
export function callOf(name: string, parameters: string[]): Statement {
  const named = parameters.map((parameter) => `_${parameter.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)}`);
  const list = named.map((one, index) => `${one} => $${index + 1}`).join(', ');
  return { text: `SELECT ${name}(${list}) AS reply`, parameters };
}

/** Returns the statements that create the functions of the schema, by the names of the functions. */
export function functionTexts(): Record<string, string> {
  const functions = [...sections.operations].filter(([name, text]) => !name.includes('/') && FUNCTION.test(text));
  return Object.fromEntries(functions.map(([name]) => [name, sqlOf(name)]));
}

/**
 * Returns the statement that sets the settings of verbs, and the search path $2, for a connection, if the connection leads straight to the
 * server ($1: the process number that the connection was given). A pooler would pass the settings on to other clients. The statement
 * returns whether it set them. Fast paths need it: statements, and functions that set nothing.
 */
export function tuning(): string {
  const settings = [...partText('settings', sections).matchAll(SETTING)];
  const set = settings.map(([, name, value]) => `set_config('${name}', ${value}, false)`);
  return `SELECT CASE WHEN pg_backend_pid() = $1 THEN set_config('search_path', $2, false) || ${set.join(' || ')} END IS NOT NULL`;
}
