// Moves, cancels and removes jobs from outside a run. A list of ids is one script, except for long cancels. A selection works in batches,
// so no script blocks Redis.
import { type ChangeStatus, movedList, replyById, replyToSelection } from '../change-reply.js';
import type { Change, ChangeReply, Selection } from '../contract/index.js';
import type { Argument } from './driver/driver.js';
import { freeText, LETTER } from './record.js';
import { send, sendSelected } from './dead-letter.js';
import { eachBatch, runBatch } from './select.js';
import type { Engine } from './driver/engine.js';

type Removal = Extract<Change, { kind: 'remove' }>;

const STATUSES: Record<string, ChangeStatus> = { d: 'done', m: 'missing', s: 'state', l: 'locked', n: 'scheduled', t: 'noStep' };

/** Jobs that one script cancels by id: this takes Redis about 3 ms. */
const CANCELLED_AT_ONCE = 150;

export function change(engine: Engine, queue: string, target: string[] | Selection, what: Change): Promise<ChangeReply> {
  return Array.isArray(target) ? changeById(engine, queue, target, what) : changeSelected(engine, queue, target, what);
}

async function changeById(engine: Engine, queue: string, jobIds: string[], change: Change): Promise<ChangeReply> {
  const statuses: ChangeStatus[] = [];
  const most = change.kind === 'cancel' ? CANCELLED_AT_ONCE : jobIds.length;
  for (let first = 0; first < jobIds.length; first += most) {
    const reply = String(await runById(engine, queue, jobIds.slice(first, first + most), change));
    // The names of queues follow that got messages.
    const [letters = '', ...sentTo] = reply.split('\0');
    if (sentTo.length > 0) await engine.relays.after(queue, sentTo);
    for (const letter of letters) statuses.push(STATUSES[letter] as ChangeStatus);
  }
  return replyById(jobIds, statuses);
}

function runById({ run }: Engine, queue: string, jobIds: string[], change: Change): Promise<unknown> {
  switch (change.kind) {
    case 'retry':
      return run('change', queue, [`r${LETTER[change.from]}`, ...retryArguments(change), ...jobIds]);
    case 'promote':
      return run('change', queue, ['p', '', '', ...jobIds]);
    case 'delay':
      return run('change', queue, ['d', change.delayMs, '', ...jobIds]);
    case 'priority':
      return run('change', queue, ['n', change.priority, change.lifo ? 1 : 0, ...jobIds]);
    case 'remove':
      return run('remove', queue, [change.children === true ? queue : '', ...jobIds]);
    case 'send':
      return send(run, queue, jobIds, change.to);
    case 'unlink':
      return run('unlink', queue, [change.child.queue, change.child.id, ...jobIds]);
    case 'revoke':
      return run('revoke', queue, [freeText(change.reason), ...jobIds]);
    case 'cancel':
      return run('cancel', queue, [freeText(change.reason), 'i', ...jobIds]);
  }
}

function retryArguments(change: Extract<Change, { kind: 'retry' }>): Argument[] {
  const [made, started] = resetsOf(change);
  return [made, change.fromStep === undefined ? started : `${started}=${change.fromStep}`];
}

/** Returns 1 for each counter of attempts that the change resets, else 0. */
function resetsOf(change: Change): [made: number, started: number] {
  if (change.kind !== 'retry') return [0, 0];
  return [change.resetAttemptsMade ? 1 : 0, change.resetAttemptsStarted ? 1 : 0];
}

async function changeSelected(engine: Engine, queue: string, selection: Selection, change: Change): Promise<ChangeReply> {
  if (change.kind === 'remove') return removeSelected(engine, queue, selection, change);
  if (change.kind === 'send') return replyToSelection(await sendSelected(engine, queue, selection, change.to), selection);
  if (change.kind === 'cancel') return replyToSelection(await cancelSelected(engine, queue, selection, change.reason), selection);
  const list = movedList(change, selection);
  const resets = resetsOf(change);
  const moved = await eachBatch({ ...selection, lists: list === undefined ? [] : [list] }, (batch) =>
    runBatch(engine, queue, 'requeue', [...batch, ...resets]),
  );
  return replyToSelection(moved, selection);
}

async function removeSelected(engine: Engine, queue: string, selection: Selection, change: Removal): Promise<ChangeReply> {
  const { children = false, parentToo = false } = change;
  const family = children || parentToo ? [queue, Number(children), Number(parentToo)] : [];
  const gone = await eachBatch(selection, (batch) => runBatch(engine, queue, 'clear', [...batch, ...family]));
  // Only records that no job matched.
  if (gone.length === 0) await engine.run('clear', queue, [LETTER.completed, '', 0, 0]);
  return replyToSelection(gone, selection);
}

/** Returns the ids of the jobs that were cancelled. Finished jobs cannot be. */
function cancelSelected(engine: Engine, queue: string, selection: Selection, reason: string): Promise<string[]> {
  const lists = selection.lists.filter((list) => list !== 'completed' && list !== 'failed');
  const args = [freeText(reason), 'l'];
  return eachBatch({ ...selection, lists }, (batch) => runBatch(engine, queue, 'cancel', [...args, ...batch]), true);
}
