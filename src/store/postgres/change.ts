// Changes jobs by their ids: retry, promote, change delay or priority, remove, unlink, revoke, cancel. Only a revoke moves an active job.
import { type ChangeStatus, replyById } from '../change-reply.js';
import type { Change, ChangeReply, Selection } from '../contract/index.js';
import { sendById } from './dead-letter.js';
import type { Engine } from './driver/engine.js';
import type { Calls } from './driver/server.js';
import { STATE } from './driver/tables.js';
import { changeSelected } from './select.js';

export async function change(engine: Engine, queue: string, target: string[] | Selection, what: Change): Promise<ChangeReply> {
  const reply = await engine.sending([queue], (calls) =>
    Array.isArray(target) ? changeById(calls, queue, target, what) : changeSelected(calls, queue, target, what),
  );
  // After a removal too: another job of the key may come first now.
  if (reply.changed.length > 0) engine.wake.signal(queue, 'jobs');
  return reply;
}

async function changeById(server: Calls, queue: string, jobIds: string[], change: Change): Promise<ChangeReply> {
  if (change.kind === 'send') return sendById(server, queue, jobIds, change.to);
  return replyById(jobIds, await statusesOf(server, queue, jobIds, change));
}

function statusesOf(server: Calls, queue: string, jobIds: string[], change: Change): Promise<ChangeStatus[]> {
  if (change.kind === 'remove') return server.call('remove_jobs', { name: queue, ids: jobIds, children: change.children });
  if (change.kind === 'cancel') return server.call('cancel_jobs', { name: queue, ids: jobIds, reason: change.reason });
  if (change.kind === 'revoke') return server.call('revoke_jobs', { name: queue, ids: jobIds, reason: change.reason });
  if (change.kind === 'unlink') {
    const { queue: childQueue, id } = change.child;
    return server.call('unlink_jobs', { name: queue, ids: jobIds, childQueue, child: id });
  }
  const each = <T>(value: T): T[] => jobIds.map(() => value);
  return server.call('change_jobs', {
    name: queue,
    kinds: each(change.kind),
    ids: jobIds,
    froms: each(stateBefore(change)),
    numbers: each(numberOf(change)),
    flags: each(change.kind === 'retry' ? change.resetAttemptsMade : change.kind === 'priority' && change.lifo),
    others: each(change.kind === 'retry' && change.resetAttemptsStarted),
    step: change.kind === 'retry' ? change.fromStep : undefined,
  });
}

/** Returns the state that the job must be in. Null: any. */
function stateBefore(change: Change): number | null {
  if (change.kind === 'retry') return STATE[change.from];
  return change.kind === 'priority' ? null : STATE.delayed;
}

function numberOf(change: Change): number | null {
  if (change.kind === 'delay') return change.delayMs;
  return change.kind === 'priority' ? change.priority : null;
}
