// Builds the replies of `change` from what the engines know. Pure.
import type { Change, ChangeReply, Selection, Unchanged } from './contract/index.js';

/** The result for one id. */
export type ChangeStatus = 'done' | Unchanged['status'];

export function replyById(jobIds: string[], statuses: ChangeStatus[]): ChangeReply {
  const reply: ChangeReply = { changed: [], others: [], more: false };
  jobIds.forEach((jobId, index) => {
    const status = statuses[index] ?? 'missing';
    if (status === 'done') reply.changed.push(jobId);
    else reply.others.push({ jobId, status });
  });
  return reply;
}

export function replyToSelection(changed: string[], { limit }: Selection): ChangeReply {
  return { changed, others: [], more: changed.length >= limit };
}

type MovedList = 'completed' | 'failed' | 'delayed';

/** Returns the list whose jobs a change by selection moves to waiting; undefined if the selection does not name it. */
export function movedList(change: Change, { lists }: Selection): MovedList | undefined {
  const list = change.kind === 'retry' ? change.from : change.kind === 'promote' ? 'delayed' : undefined;
  return list !== undefined && lists.includes(list) ? list : undefined;
}
