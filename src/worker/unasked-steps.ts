// Warns of recorded steps that a handler no longer asks for: a step was renamed or removed while jobs were under way.
import { show } from '../runtime/check.js';

/** Each step is told once per process. */
const told = new Set<string>();
const MAX_TOLD = 1000;

export function warnOfUnasked(queue: string, names: string[]): void {
  const fresh = names.filter((name) => !told.has(`${queue}:${name}`));
  if (fresh.length === 0 || told.size > MAX_TOLD) return;
  for (const name of fresh) told.add(`${queue}:${name}`);
  const message = `A job of queue "${queue}" has completed with recorded steps that its handler no longer asks for: ${fresh.map(show).join(', ')}. Was a step renamed while jobs were under way? A renamed step runs again.`;
  process.emitWarning(message, { type: 'HoldfastWarning', code: 'HOLDFAST_STEPS_UNASKED' });
}
