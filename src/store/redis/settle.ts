import type { Keep, Outcome, SettleStatus } from '../../job/outcome.js';
import type { Call, ClaimRequest, SettleReply } from '../contract.js';
import { claimArguments, type RawClaim, readClaim } from './claim.js';
import type { Argument } from './driver.js';
import { freeText } from './job-text.js';
import type { Runner } from './runner.js';

const NO_CLAIM: Argument[] = ['', '', '', '', '', '', '', ''];
export const STATUSES: Record<string, SettleStatus> = { d: 'done', l: 'lost', m: 'missing' };

export async function settle(
  run: Runner,
  queue: string,
  outcomes: Outcome[],
  call: Call | undefined,
  request: ClaimRequest | undefined,
): Promise<SettleReply> {
  const claim = request === undefined ? NO_CLAIM : claimArguments(request);
  const args: Argument[] = [call?.caller ?? '', call?.seq ?? '', request === undefined ? 0 : 1, ...claim, outcomes.length];
  for (const outcome of outcomes) write(args, outcome);
  args.push(...(request?.jobIds ?? []));
  const [letters, claimed] = (await run('settle', queue, args)) as [string, RawClaim | null];
  const results = Array.from(letters, (letter) => STATUSES[letter] as SettleStatus);
  return claimed === null ? { results } : { results, claimed: readClaim(claimed) };
}

function write(args: Argument[], outcome: Outcome): void {
  const { jobId, token } = outcome;
  switch (outcome.kind) {
    case 'completed':
      args.push('c', jobId, token, outcome.value, keeping(outcome.keep));
      break;
    case 'failed':
      args.push('f', jobId, token, freeText(outcome.reason), outcome.stacktrace, keeping(outcome.keep));
      break;
    case 'retry':
      args.push('r', jobId, token, freeText(outcome.reason), outcome.stacktrace, outcome.delayMs, outcome.lifo ? 1 : 0);
      break;
    case 'delay':
      args.push('d', jobId, token, outcome.delayMs);
      break;
    case 'release':
      args.push('w', jobId, token);
      break;
  }
}

function keeping({ count, ageMs }: Keep): string {
  if (count === 0) return '0';
  return count === undefined && ageMs === undefined ? '' : `${count ?? ''},${ageMs ?? ''}`;
}
