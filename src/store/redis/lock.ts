import type { Extension, ExtendStatus } from '../contract.js';
import { inParts } from './in-parts.js';
import { freeText } from './job-text.js';
import type { Runner } from './runner.js';
import { STATUSES } from './settle.js';

export function extend(run: Runner, queue: string, extensions: Extension[]): Promise<ExtendStatus[]> {
  return inParts(extensions, async (part) => {
    const letters = await run(
      'extend',
      queue,
      part.flatMap(({ jobId, token, durationMs }) => [jobId, token, durationMs]),
    );
    return Array.from(String(letters), (letter) => (letter === 'f' ? 'finished' : (STATUSES[letter] as ExtendStatus)));
  });
}

export function revoke(run: Runner, queue: string, jobIds: string[], reason: string): Promise<boolean[]> {
  return inParts(jobIds, async (part) => {
    const replies = (await run('revoke', queue, [freeText(reason), ...part])) as number[];
    return replies.map((reply) => reply === 1);
  });
}
