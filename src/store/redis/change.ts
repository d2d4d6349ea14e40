// Moves and removes jobs from outside a run. A list of ids is one script. A selection works in batches, so no script blocks Redis.
import { withoutFamilies } from '../no-families.js';
import { type ChangeStatus, movedList, replyById, replyToSelection } from '../change-reply.js';
import type { Change, ChangeReply, Selection } from '../contract/index.js';
import { freeText, LETTER } from './record.js';
import type { Runner } from './driver/runner.js';
import { eachBatch } from './select.js';

const STATUSES: Record<string, ChangeStatus> = { d: 'done', m: 'missing', s: 'state', l: 'locked', n: 'scheduled' };

export async function changeById(run: Runner, queue: string, jobIds: string[], change: Change): Promise<ChangeReply> {
  const letters = await runById(run, queue, jobIds, change);
  return replyById(
    jobIds,
    Array.from(String(letters), (letter) => STATUSES[letter] as ChangeStatus),
  );
}

function runById(run: Runner, queue: string, jobIds: string[], change: Change): Promise<unknown> {
  switch (change.kind) {
    case 'retry':
      return run('change', queue, [`r${LETTER[change.from]}`, ...resetsOf(change), ...jobIds]);
    case 'promote':
      return run('change', queue, ['p', '', '', ...jobIds]);
    case 'delay':
      return run('change', queue, ['d', change.delayMs, '', ...jobIds]);
    case 'priority':
      return run('change', queue, ['n', change.priority, change.lifo ? 1 : 0, ...jobIds]);
    case 'remove':
      return run('remove', queue, jobIds);
    case 'send':
    case 'unlink':
      throw withoutFamilies('redis');
    case 'revoke':
      return run('revoke', queue, [freeText(change.reason), ...jobIds]);
  }
}

/** Returns 1 for each counter of attempts that the change resets, else 0. */
function resetsOf(change: Change): [made: number, started: number] {
  if (change.kind !== 'retry') return [0, 0];
  return [change.resetAttemptsMade ? 1 : 0, change.resetAttemptsStarted ? 1 : 0];
}

export async function changeSelected(run: Runner, queue: string, selection: Selection, change: Change): Promise<ChangeReply> {
  if (change.kind === 'remove') return removeSelected(run, queue, selection);
  const list = movedList(change, selection);
  const resets = resetsOf(change);
  const moved = await eachBatch({ ...selection, lists: list === undefined ? [] : [list] }, (batch) =>
    run('requeue', queue, [...batch, ...resets]),
  );
  return replyToSelection(moved, selection);
}

async function removeSelected(run: Runner, queue: string, selection: Selection): Promise<ChangeReply> {
  const gone = await eachBatch(selection, (batch) => run('clear', queue, batch));
  // Only records that no job matched.
  if (gone.length === 0) await run('clear', queue, [LETTER.completed, '', 0, 0]);
  return replyToSelection(gone, selection);
}
