// Changes by selection: removes or cancels jobs, or moves them to waiting, list by list. Only a cancel touches a job that is locked, and leaves
// the lock as it is.
import { movedList, replyToSelection } from '../change-reply.js';
import type { Change, ChangeReply, Selection } from '../contract/index.js';
import { sendSelected } from './dead-letter.js';
import type { Calls } from './driver/server.js';

export async function changeSelected(server: Calls, queue: string, selection: Selection, change: Change): Promise<ChangeReply> {
  const { lists, olderThanMs = null } = selection;
  const limit = Math.min(selection.limit, 2 ** 31 - 1);
  if (change.kind === 'remove') {
    const removed = await server.call<string[]>('remove_listed', {
      name: queue,
      lists: [...new Set(lists)],
      age: olderThanMs,
      limit,
      children: change.children,
      parentToo: change.parentToo,
    });
    return replyToSelection(removed, selection);
  }
  if (change.kind === 'cancel') {
    const values = { name: queue, lists: [...new Set(lists)], age: olderThanMs, limit, reason: change.reason };
    return replyToSelection(await server.call<string[]>('cancel_listed', values), selection);
  }
  if (change.kind === 'send') return sendSelected(server, queue, selection, change.to);
  const list = movedList(change, selection);
  if (list === undefined) return replyToSelection([], selection);
  const moved = await server.call<string[]>('requeue_listed', {
    name: queue,
    list,
    age: olderThanMs,
    limit,
    resetMade: change.kind === 'retry' && change.resetAttemptsMade,
    resetStarted: change.kind === 'retry' && change.resetAttemptsStarted,
  });
  return replyToSelection(moved, selection);
}
