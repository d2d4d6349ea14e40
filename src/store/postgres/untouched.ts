// Guards against a wait that SKIP LOCKED does not skip. Transaction A has changed a row and commits just when verb B reads the row;
// transaction C, next in line, has locked it by then. The server follows the row to its new version, and B waits there for C. B may hold
// rows that C wants. So two verbs with a sound lock order deadlocked, once in 40 runs of a storm, on a machine with more work than cores.
// Rows that another transaction is changing are therefore left out before the server tries to lock them.

/**
 * Condition on a row of `jobs` that is locked with SKIP LOCKED. Not for tables with shared locks, where `xmax` may have another meaning.
 */
export const UNTOUCHED = '(xmax = 0 OR untouched(xmax))';
