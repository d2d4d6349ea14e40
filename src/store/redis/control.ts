// Operator verbs of a queue: configure and forget.
import type { ForgetTarget, QueueSettings } from '../contract/index.js';
import type { Runner } from './runner.js';

export async function configure(run: Runner, queue: string, { paused, blockedMs, cap }: QueueSettings): Promise<void> {
  const maxActive = cap === null ? -1 : cap?.maxActive;
  await run('configure', queue, [paused === undefined ? '' : Number(paused), blockedMs ?? '', maxActive ?? '']);
}

export async function forget(run: Runner, queue: string, what: ForgetTarget): Promise<number> {
  if ('events' in what) return Number(await run('forget', queue, [what.events, 0]));
  if ('caller' in what) await run('forget-caller', queue, [what.caller]);
  else await run('forget', queue, [0, 1]);
  return 0;
}
