// Reads a history and says what was wrong, and what came of it in numbers. It knows nothing of stores and processes, so it can be asked
// again about a run of long ago, and about histories that were made up to see it object.
import { judgeDrafts } from './drafts.mjs';
import { judgeFences } from './fences.mjs';
import { countFlows, judgeFlows } from './flows.mjs';
import { countGrouped, judgeGroups } from './groups.mjs';
import { holdsOf, judgeHolds } from './holds.mjs';
import { jobsOf, judgeJobs } from './jobs.mjs';
import { overlapsOf } from './overlaps.mjs';
import { judgeProcesses } from './processes.mjs';
import { countRated, judgeRates } from './rates.mjs';
import { recoveriesOf } from './recoveries.mjs';
import { countSlots, judgeSlots } from './slots.mjs';
import { countSteps, judgeSteps } from './steps.mjs';
import { judgeWrites } from './writes.mjs';

/** What an asynchronous replica may lose: promises that rest on a write which it had not got. Nothing else is forgiven. */
const LOSABLE = new Set([
  'lost',
  'draft lost',
  'slot twice',
  'slot missing',
  'slot lost',
  'finished twice',
  'added twice',
  'same id',
  'stale finish',
  'finish not kept',
  'two holders',
  'group over its limit',
  'rate over its limit',
  'child lost before its parent began',
  'letter missing',
  'letter twice',
  'step done again',
  'ran after its cancel',
]);
const BEFORE_PROMOTION_MS = 5000;
/** Until everybody has renewed with the new primary and was told what it has lost. */
const AFTER_PROMOTION_MS = 15_000;

/**
 * `concerns` names fences, jobs and processes whose lines show it.
 * @typedef {{ rule: string, text: string, at: number, concerns: object }} Violation
 * @returns {{ violations: Violation[], losses: Violation[], figures: { recoveries: Record<string, number[]> } & Record<string, unknown> }}
 */
export function judge(entries) {
  const holds = holdsOf(entries);
  const jobs = jobsOf(entries);
  const found = [
    ...judgeHolds(holds),
    ...judgeGroups(holds),
    ...judgeRates(entries),
    ...judgeJobs(jobs, holds),
    ...judgeDrafts(entries, jobs, holds),
    ...judgeSlots(entries, jobs),
    ...judgeFlows(entries, jobs, holds),
    ...judgeSteps(entries, holds),
    ...judgeWrites(entries),
    ...judgeFences(entries, holds),
    ...judgeProcesses(entries),
  ];
  const promotions = entries.filter(({ event }) => event === 'promoted').map(({ at }) => at);
  const isLoss = ({ rule, at }) =>
    LOSABLE.has(rule) && promotions.some((moment) => at >= moment - BEFORE_PROMOTION_MS && at <= moment + AFTER_PROMOTION_MS);
  return {
    violations: found.filter((violation) => !isLoss(violation)),
    losses: found.filter(isLoss),
    figures: figuresOf(entries, holds, jobs),
  };
}

function figuresOf(entries, holds, jobs) {
  const count = (event, filter = () => true) => entries.filter((entry) => entry.event === event && filter(entry)).length;
  const at = (event) => entries.find((entry) => entry.event === event)?.at;
  const taken = (kind) => holds.filter(({ things }) => things[0].startsWith(`${kind}:`)).length;
  return {
    faults: entries.find(({ event }) => event === 'calm')?.faults ?? {},
    acknowledged: jobs.acknowledged.size,
    refusedAdds: count('refused'),
    runs: taken('job'),
    terms: taken('leader'),
    namedLocks: taken('name'),
    completed: count('accepted', ({ outcome }) => outcome === 'completed'),
    failed: count('accepted', ({ outcome }) => outcome === 'failed'),
    slots: countSlots(entries),
    flows: countFlows(entries, jobs),
    steps: countSteps(entries),
    grouped: countGrouped(holds),
    rated: countRated(entries),
    promotions: count('promoted'),
    kills: count('killed'),
    told: holds.filter(({ toldAt }) => toldAt !== undefined).length,
    writes: count('write'),
    refusedWrites: count('write', ({ accepted }) => !accepted),
    left: entries.find(({ event }) => event === 'drained')?.left ?? 0,
    calmMs: (at('drained') ?? 0) - (at('calm') ?? 0),
    overlaps: overlapsOf(entries, holds),
    recoveries: recoveriesOf(entries, holds),
  };
}
