// Operator verbs on jobs and queues: cap, change, remove, clear, requeue. Clear and requeue work in batches, so no script blocks Redis.
import type { Cap, Change, ChangeStatus, RemoveStatus, Selection } from '../contract/index.js';
import type { Argument } from './driver.js';
import { LETTER } from './job-text.js';
import type { Runner } from './runner.js';

const CHANGE_STATUSES: Record<string, ChangeStatus> = { d: 'done', m: 'missing', s: 'state' };
const REMOVE_STATUSES: Record<string, RemoveStatus> = { d: 'done', m: 'missing', l: 'locked' };
/** Jobs that one script removes or requeues at most. */
const AT_ONCE = 150;

export async function cap(run: Runner, queue: string, given: Cap | undefined): Promise<void> {
  await run('cap', queue, [given?.maxActive ?? '']);
}

export async function change(run: Runner, queue: string, changes: Change[]): Promise<ChangeStatus[]> {
  const letters = await run('change', queue, changes.flatMap(changeArguments));
  return Array.from(String(letters), (letter) => CHANGE_STATUSES[letter] as ChangeStatus);
}

function changeArguments(change: Change): Argument[] {
  const { jobId } = change;
  switch (change.kind) {
    case 'retry':
      return [jobId, `r${LETTER[change.from]}`, change.resetAttemptsMade ? 1 : 0, change.resetAttemptsStarted ? 1 : 0];
    case 'promote':
      return [jobId, 'p', '', ''];
    case 'delay':
      return [jobId, 'd', change.delayMs, ''];
    case 'priority':
      return [jobId, 'n', change.priority, change.lifo ? 1 : 0];
  }
}

export async function remove(run: Runner, queue: string, jobIds: string[]): Promise<RemoveStatus[]> {
  const letters = await run('remove', queue, jobIds);
  return Array.from(String(letters), (letter) => REMOVE_STATUSES[letter] as RemoveStatus);
}

export async function clear(run: Runner, queue: string, selection: Selection): Promise<string[]> {
  const gone: string[] = [];
  if (selection.limit === 0) await run('clear', queue, [LETTER.completed, '', 0, 0, selection.removed ?? 0]);
  await eachBite(selection, async (letter, age, limit, position) => {
    const [ids, next] = (await run('clear', queue, [letter, age, limit, position])) as [string[], number];
    for (const id of ids) gone.push(id);
    return [ids.length, next];
  });
  return gone;
}

export async function requeue(run: Runner, queue: string, selection: Selection): Promise<number> {
  const states = selection.states.filter((state) => state !== 'waiting');
  return eachBite({ ...selection, states }, async (letter, age, limit, position) => {
    return (await run('requeue', queue, [letter, age, limit, position])) as [number, number];
  });
}

type Bite = (letter: string, age: Argument, limit: number, position: number) => Promise<[count: number, next: number]>;

/**
 * Calls `bite` for one batch after the other and one state after the other, until the limit is reached. It skips active jobs, because they
 * are locked. Returns the number of jobs.
 */
async function eachBite({ states, olderThanMs, limit }: Selection, bite: Bite): Promise<number> {
  const begun = performance.now();
  let left = limit;
  for (const state of new Set(states)) {
    if (state === 'active') continue;
    for (let position = 0; position >= 0 && left > 0; ) {
      // The age counts from the first batch on: otherwise newer jobs would become old enough while the batches run.
      const age = olderThanMs === undefined ? '' : Math.ceil(olderThanMs + performance.now() - begun);
      const [count, next] = await bite(LETTER[state], age, Math.min(left, AT_ONCE), position);
      left -= count;
      position = next;
    }
  }
  return limit - left;
}
