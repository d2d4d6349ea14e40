// What the product wants to reach, and whether a run has reached it. A ratio is taken within each round, against the same round's
// peer; the median of the rounds counts. A short run is not judged.
import { median } from '../statistics.mjs';
import { show } from './figures.mjs';

const backlog = (concurrency) => `backlog, concurrency ${concurrency}`;
const ADDS = ['add, one by one', 'add, 1,000 in flight', 'add, bulks of 1,000'];
const WAITS = ['one process', 'two processes'].flatMap((where) =>
  ['p50', 'p99'].map((part) => `add to start, idle, ${where}, ${part}`),
);
const SHARED = ['redis', 'postgres', 'sqlite'];
const ALL = [...SHARED, 'memory'];

/** `times`: at least so many times as good as `against`, which is a contestant or the best peer. `most`, `least`: bounds of our own figure. */
const TARGETS = [
  { stores: ['redis'], what: backlog(100), against: 'bullmq', times: 3 },
  { stores: ['redis'], what: backlog(100), against: 'raw', times: 0.55 },
  { stores: ['redis'], what: backlog(10), against: 'bullmq', times: 2.5 },
  { stores: ['redis'], what: backlog(1), against: 'bullmq', times: 1.3 },
  { stores: ['redis'], what: ADDS[0], against: 'bullmq', times: 1.3 },
  { stores: ['redis'], what: ADDS[1], against: 'bullmq', times: 2 },
  { stores: ['redis'], what: ADDS[2], against: 'bullmq', times: 4 },
  { stores: ['postgres'], what: backlog(100), against: 'graphile-tuned', times: 1.2 },
  { stores: ['postgres'], what: backlog(100), against: 'pg-boss', times: 3 },
  { stores: ['postgres'], what: backlog(100), against: 'bullmq', times: 20 },
  { stores: ['postgres'], what: backlog(10), against: 'pg-boss', times: 3 },
  { stores: ['postgres'], what: backlog(1), against: 'bullmq', times: 1.5 },
  { stores: ['postgres'], what: backlog(1), ours: 'holdfast-prefetch', against: 'graphile-tuned', times: 1 },
  { stores: ['sqlite'], what: backlog(100), against: 'raw', times: 0.5 },
  { stores: ['sqlite'], what: backlog(100), against: 'boringnode', times: 30 },
  { stores: ['sqlite'], what: backlog(10), against: 'boringnode', times: 20 },
  { stores: ['sqlite'], what: backlog(1), against: 'boringnode', times: 2 },
  // A job of a group costs at most one and a half times as much.
  ...[10, 100].map((concurrency) => ({
    stores: ALL,
    what: backlog(concurrency),
    ours: 'holdfast-groups',
    against: 'holdfast',
    times: 0.67,
  })),
  { stores: ['memory'], what: backlog(100), against: 'raw', times: 0.5, or: { least: 300_000 } },
  ...ADDS.map((what) => ({ stores: ['postgres', 'sqlite'], what, against: 'best', times: 1 })),
  ...WAITS.map((what) => ({ stores: SHARED, what, against: 'best', times: 1 })),
  ...[1, 10, 100].map((concurrency) => ({
    stores: SHARED,
    what: `smaller share, concurrency ${concurrency}, 2 processes`,
    least: 100 / 3,
  })),
  { stores: ALL, what: 'renewal, 100,000 active jobs', most: 1 },
  { stores: ALL, what: 'longest sweep call, 1 % dead of 100,000', most: 5 },
  { stores: ALL, what: 'claim, 1,000,000 against 10,000 waiting', most: 1.3 },
  { stores: SHARED, what: '10,000 sessions, all upkeep', most: 5 },
  { stores: SHARED, what: 'threads of 20 workers', most: 1 },
  { stores: ALL, what: 'memory of a process with 20 workers', above: 'memory of a process with 1 worker', most: 25 },
  { stores: SHARED, what: 'ran twice of 10, blocked loop', most: 0 },
  { stores: SHARED, what: 'SIGKILL to start elsewhere', most: 5 },
];

/** How many times as good as `theirs` ours is: the median of the rounds that both have. */
export function advantage(better, ours, theirs) {
  const ratios = ours.values.flatMap((value, round) => {
    const other = theirs.values[round];
    if (value === null || value === undefined || other === null || other === undefined) return [];
    return better === 'more' ? [value / other] : [other / value];
  });
  return ratios.length === 0 || ratios.some(Number.isNaN) ? undefined : median(ratios);
}

/** The verdicts on one row: `{ contestant, text, met }`, where `contestant` is whom it is about. */
export function judge(row, { rows, judged }) {
  if (!judged) return [];
  const targets = TARGETS.filter(({ stores, what }) => what === row.what && stores.includes(row.store));
  return targets.flatMap((target) => (target.times === undefined ? judgeBound(target, row, rows) : judgeRatio(target, row)));
}

function judgeRatio({ ours: id = 'holdfast', against, times, or }, row) {
  const ours = row.contestants.find((each) => each.id === id);
  const theirs = against === 'best' ? bestPeer(row) : row.contestants.find((each) => each.id === against);
  if (ours === undefined || theirs === undefined) return [];
  const ratio = advantage(row.better, ours, theirs);
  if (ratio === undefined) return [];
  const met = ratio >= times || (or !== undefined && median(ours.values) >= or.least);
  const by = met ? '' : ` by ${Math.round((1 - ratio / times) * 100)} %`;
  const name = id === 'holdfast' ? '' : `${ours.label}: `;
  return [{ contestant: theirs.id, met, text: `${name}target ${times} ×: ${met ? 'met' : `missed${by}`}` }];
}

function judgeBound({ most, least, above }, row, rows) {
  const ours = row.contestants.find(({ id }) => id === 'holdfast');
  if (ours === undefined) return [];
  const base = above === undefined ? undefined : rows.find(({ store, what }) => store === row.store && what === above);
  const from = base?.contestants.find(({ id }) => id === 'holdfast');
  if (above !== undefined && from === undefined) return [];
  const value = median(ours.values) - (from === undefined ? 0 : median(from.values));
  const met = most === undefined ? value >= least : value <= most;
  const bound = most === undefined ? `at least ${least.toPrecision(3)}` : `at most ${most}${above === undefined ? '' : ' more'}`;
  const by = met ? '' : ` by ${show(Math.abs(value - (most ?? least)))} ${row.unit}`;
  return [{ contestant: 'holdfast', met, text: `target ${bound}: ${met ? 'met' : `missed${by}`}` }];
}

export function bestPeer(row) {
  const peers = row.contestants.filter(({ kind }) => kind === 'peer');
  const worth = ({ values }) => (row.better === 'more' ? median(values) : -median(values));
  return peers.sort((a, b) => worth(b) - worth(a))[0];
}
