// Builds the texts of the SQL functions. Every verb is one function, so that it is one round trip and one transaction, also behind a
// pooler that assigns connections per transaction. The server also keeps the plans of a function without named statements.

// Plans must not depend on statistics: a table is empty in one minute and has a million rows in the next. So the planner may choose only
// index scans and nested loops. These also lock rows in the requested order, and a query that asks for an order gets the index that has
// it.
// Plans with disabled nodes look expensive, and the JIT would compile expensive plans for 100 ms and more.
const SETTINGS: Record<string, string> = {
  plan_cache_mode: 'force_generic_plan',
  enable_seqscan: 'off',
  enable_bitmapscan: 'off',
  enable_hashjoin: 'off',
  enable_mergejoin: 'off',
  enable_material: 'off',
  enable_sort: 'off',
  jit: 'off',
  // Less than the timeout of a call, so that the caller gets the real reason: a foreign transaction holds the lock.
  lock_timeout: '8s',
};

/** A verb: a function that the store calls. The search path of this moment is the schema's, and stays with the function. */
export function verb(signature: string, returns: string, body: string): string {
  const settings = ['search_path FROM CURRENT', ...Object.entries(SETTINGS).map(([name, value]) => `${name} TO '${value}'`)]
    .map((setting) => `SET ${setting}`)
    .join(' ');
  return `CREATE FUNCTION ${signature} RETURNS ${returns} LANGUAGE plpgsql ${settings} AS $body$${body}$body$;\n`;
}

/**
 * Sets all SETTINGS, and the search path $2, for a connection, if the connection leads straight to the server ($1: the process number
 * that the connection was given). A pooler would pass the settings on to other clients. Returns whether it set them. Fast paths need it:
 * statements, and functions that set nothing.
 */
export const TUNING = `SELECT CASE WHEN pg_backend_pid() = $1 THEN set_config('search_path', $2, false) || ${Object.entries(
  SETTINGS,
)
  .map(([name, value]) => `set_config('${name}', '${value}', false)`)
  .join(' || ')} END IS NOT NULL`;

/** A step: a function that verbs call under their settings, or that the store calls as a fast path under those of the connection. */
export function step(signature: string, returns: string, body: string): string {
  return `CREATE FUNCTION ${signature} RETURNS ${returns} LANGUAGE plpgsql AS $body$${body}$body$;\n`;
}

/** An expression that the server inlines where it is called. */
export function expression(signature: string, returns: string, kind: 'IMMUTABLE' | 'STABLE' | 'VOLATILE', body: string): string {
  return `CREATE FUNCTION ${signature} RETURNS ${returns} LANGUAGE sql ${kind} AS $body$SELECT ${body}$body$;\n`;
}
