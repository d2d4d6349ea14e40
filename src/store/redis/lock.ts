// Extends the locks of jobs. An extension needs the current token.
import type { Extension, ExtendStatus } from '../contract/index.js';
import { STATUSES } from './settle.js';
import type { Engine } from './driver/engine.js';

export async function extend({ run }: Engine, queue: string, extensions: Extension[]): Promise<ExtendStatus[]> {
  const args = extensions.flatMap(({ jobId, token, durationMs, alone }) => [jobId, token, durationMs, alone ? 1 : 0]);
  const letters = await run('extend', queue, args);
  return Array.from(String(letters), (letter) => (letter === 'f' ? 'finished' : (STATUSES[letter] as ExtendStatus)));
}
