// Extends and revokes the locks of jobs. An extension needs the current token; a revoke hands the job back without counting a stall.
import type { Extension, ExtendStatus } from '../contract/index.js';
import { freeText } from './job-text.js';
import type { Runner } from './runner.js';
import { STATUSES } from './settle.js';

export async function extend(run: Runner, queue: string, extensions: Extension[]): Promise<ExtendStatus[]> {
  const args = extensions.flatMap(({ jobId, token, durationMs }) => [jobId, token, durationMs]);
  const letters = await run('extend', queue, args);
  return Array.from(String(letters), (letter) => (letter === 'f' ? 'finished' : (STATUSES[letter] as ExtendStatus)));
}

export async function revoke(run: Runner, queue: string, jobIds: string[], reason: string): Promise<boolean[]> {
  const replies = (await run('revoke', queue, [freeText(reason), ...jobIds])) as number[];
  return replies.map((reply) => reply === 1);
}
