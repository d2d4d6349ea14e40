// Sends dead letters back. The failure of a job writes its letter (send_ends), and a relay adds it to its queue.
import { type ChangeStatus, replyById, replyToSelection } from '../change-reply.js';
import type { ChangeReply, Selection } from '../contract/index.js';
import type { Calls } from './driver/server.js';

export async function sendById(server: Calls, queue: string, jobIds: string[], to: string): Promise<ChangeReply> {
  return replyById(jobIds, await server.call<ChangeStatus[]>('send_letters', { name: queue, ids: jobIds, to }));
}

export async function sendSelected(server: Calls, queue: string, selection: Selection, to: string): Promise<ChangeReply> {
  const { lists, olderThanMs } = selection;
  const limit = Math.min(selection.limit, 2 ** 31 - 1);
  const sent = await server.call<string[]>('send_listed', {
    name: queue,
    lists: [...new Set(lists)],
    age: olderThanMs,
    limit,
    to,
  });
  return replyToSelection(sent, selection);
}
