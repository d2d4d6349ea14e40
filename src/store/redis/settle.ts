// Settles jobs: sends the outcomes that workers report, and claims the next jobs in the same call. lua/settle.lua applies both.
import { refKey } from '../../job/family.js';
import type { Keep, Outcome, SettleStatus } from '../../job/outcome.js';
import type { Call, ClaimRequest, SettleReply } from '../contract/index.js';
import { hasStalled } from '../../job/record.js';
import { fillLosses, laneText, type RawClaim, readClaim, writeClaim } from './claim.js';
import type { Argument } from './driver/driver.js';
import { freeText } from './record.js';
import type { Engine } from './driver/engine.js';

const LETTERS: Record<Outcome['kind'], string> = {
  completed: 'c',
  failed: 'f',
  retry: 'r',
  delay: 'd',
  release: 'w',
  return: 'u',
  children: 'k',
};
export const STATUSES: Record<string, SettleStatus> = {
  d: 'done',
  l: 'lost',
  m: 'missing',
  p: 'pending',
  u: 'unsuccessful',
  r: 'ready',
  f: 'full',
  e: 'ended',
};

export async function settle(
  { run, relays }: Engine,
  queue: string,
  outcomes: Outcome[],
  call: Call | undefined,
  request: ClaimRequest | undefined,
): Promise<SettleReply> {
  const args: Argument[] = [call?.caller ?? '', call?.seq ?? '', laneText(call?.lane), request === undefined ? 0 : 1];
  if (request === undefined) args.push('', '', '', '', '', '');
  else writeClaim(args, request);
  args.push(outcomes.length);
  writeSeries(args, outcomes);
  if (request?.jobIds !== undefined) for (const id of request.jobIds) args.push(id);
  else if (request !== undefined) relays.writeNear(args, queue);
  const reply = (await run('settle', queue, args)) as [string, ...RawClaim];
  const letters = reply[0];
  // The reply to an earlier try of the call may be for more outcomes. After a NUL, the names of queues follow that got messages.
  const end = letters.length > outcomes.length ? letters.indexOf('\0') : -1;
  const count = end < 0 ? letters.length : end;
  const results: SettleStatus[] = [];
  for (let n = 0; n < count; n += 1) results.push(STATUSES[letters[n] as string] as SettleStatus);
  if (end >= 0) await relays.after(queue, letters.slice(end + 1).split('\0'));
  if (request === undefined) return { results };
  const claimed = readClaim(reply, request);
  if (claimed.jobs.some(hasStalled)) await fillLosses(run, queue, claimed.jobs);
  return { results, claimed };
}

function letterOf(outcome: Outcome): string {
  if (outcome.kind === 'delay' && outcome.step !== undefined) return 's';
  return outcome.kind === 'failed' && outcome.early === true ? 'e' : LETTERS[outcome.kind];
}

/** Writes outcomes in series: consecutive outcomes of one kind, session and retention send these only once (see lua/settle.lua). */
function writeSeries(args: Argument[], outcomes: Outcome[]): void {
  let series = '';
  let sizeAt = 0;
  let size = 0;
  for (const outcome of outcomes) {
    const { jobId, token } = outcome;
    const kind = letterOf(outcome);
    const fenceAt = token.lastIndexOf(':') + 1;
    const owner = token.slice(0, fenceAt);
    const keep = 'keep' in outcome ? keeping(outcome.keep) : '';
    if (size === 0 || series !== `${kind}${keep} ${owner}`) {
      if (size > 0) args[sizeAt] = size;
      series = `${kind}${keep} ${owner}`;
      sizeAt = args.push(kind, 0, keep, owner) - 3;
      size = 0;
    }
    size += 1;
    args.push(jobId, token.slice(fenceAt));
    writeTexts(args, outcome);
  }
  args[sizeAt] = size;
}

function writeTexts(args: Argument[], outcome: Outcome): void {
  switch (outcome.kind) {
    case 'completed':
      args.push(outcome.value);
      break;
    case 'failed':
      args.push(freeText(outcome.reason), outcome.stacktrace);
      break;
    case 'retry':
      args.push(freeText(outcome.reason), outcome.stacktrace, outcome.delayMs, outcome.lifo ? 1 : 0);
      break;
    case 'delay':
      args.push(outcome.delayMs);
      if (outcome.step !== undefined) args.push(outcome.step.name, outcome.step.value, awaitsText(outcome.awaits));
      break;
    case 'children':
      args.push(outcome.child === undefined ? '' : refKey(outcome.child));
      break;
    case 'release':
    case 'return':
      break;
  }
}

function awaitsText(name: string | undefined): string {
  return name === undefined ? '' : `=${name}`;
}

function keeping({ count, ageMs }: Keep): string {
  if (count === 0) return '0';
  return count === undefined && ageMs === undefined ? '' : `${count ?? ''},${ageMs ?? ''}`;
}
