// Folds the journal beside fast paths that are one statement (fold).
import type { Server } from '../driver/server.js';

/** One of this many calls folds, if no other transaction is folding. Calls of functions fold by themselves (`fold-sometimes` in sql/journal.sql). */
const FOLD_EVERY = 32;
/** Timeout of a fold that runs aside, in ms. */
const FOLD_MS = 3000;

/** Folds sometimes. The caller does not wait for the fold. */
export function foldAside(server: Server, queue: string): void {
  if (Math.random() < 1 / FOLD_EVERY) void server.askShort('fold_aside', { queue }, FOLD_MS).catch(() => undefined);
}
