// How the functions of the schema are written. Every verb is one function, so that it is one round trip and one transaction, also
// behind a pooler that hands out connections by the transaction, and so that the server keeps its plans without named statements.

// Plans must not depend on what statistics say of a table that is empty in one minute and has a million rows in the next: only
// index scans and nested loops are left to choose from, which also lock rows in the order in which they are asked for, and whoever asks
// for an order gets the index that has it.
// `disabled' plans look expensive, and expensive ones would be compiled by the JIT for 100 ms and more.
const SETTINGS: Record<string, string> = {
  plan_cache_mode: 'force_generic_plan',
  enable_seqscan: 'off',
  enable_bitmapscan: 'off',
  enable_hashjoin: 'off',
  enable_mergejoin: 'off',
  enable_material: 'off',
  enable_sort: 'off',
  jit: 'off',
  // Below the time that a client waits for an answer: a lock that a foreign transaction holds is reported as what it is.
  lock_timeout: '8s',
};

/** Called from outside. The search path of the moment is the schema's, and stays with the function. */
export function verb(signature: string, returns: string, body: string): string {
  const settings = ['search_path FROM CURRENT', ...Object.entries(SETTINGS).map(([name, value]) => `${name} TO '${value}'`)]
    .map((setting) => `SET ${setting}`)
    .join(' ');
  return `CREATE FUNCTION ${signature} RETURNS ${returns} LANGUAGE plpgsql ${settings} AS $body$${body}$body$;\n`;
}

/**
 * Sets all of it, and the search path $2, for a connection, if that leads to the server ($1: the process that the connection was told of): a
 * pooler would hand what was set to others. Answers whether it did. Short ways need it: statements, and functions that set nothing.
 */
export const TUNING = `SELECT CASE WHEN pg_backend_pid() = $1 THEN set_config('search_path', $2, false) || ${Object.entries(
  SETTINGS,
)
  .map(([name, value]) => `set_config('${name}', '${value}', false)`)
  .join(' || ')} END IS NOT NULL`;

/** Called by verbs, under their settings, or as a short way under those of the connection. */
export function step(signature: string, returns: string, body: string): string {
  return `CREATE FUNCTION ${signature} RETURNS ${returns} LANGUAGE plpgsql AS $body$${body}$body$;\n`;
}

/** An expression that is put where it is called. */
export function expression(signature: string, returns: string, kind: 'IMMUTABLE' | 'STABLE' | 'VOLATILE', body: string): string {
  return `CREATE FUNCTION ${signature} RETURNS ${returns} LANGUAGE sql ${kind} AS $body$SELECT ${body}$body$;\n`;
}
