// Chaos is as good as its judge: each promise is broken here once, in a history that was made up, and the judge must name it.
import { expect, test } from 'vitest';
import { excerpt } from '../../chaos/judge/excerpt.mjs';
import { judge } from '../../chaos/judge/judge.mjs';

interface Line {
  at: number;
  who: string;
  event: string;
  [field: string]: unknown;
}

const line = (at: number, who: string, event: string, fields: object = {}): Line => ({ at, who, event, ...fields });
const added = (id: string, at = 1): Line => line(at, 'producer-1.1', 'added', { jobs: [{ id, key: `k${id}` }] });
const take = (at: number, who: string, fence: number, things = ['job:1'], fields: object = {}): Line =>
  line(at, who, 'take', { things, fence, queue: 'work', held: true, key: 'k1', first: true, ...fields });
const told = (at: number, who: string, fence: number, lastHeld: number): Line =>
  line(at, who, 'told', { queue: 'work', fence, lastHeld });
const end = (at: number, who: string, fence: number, lastHeld: number, queue = 'work'): Line =>
  line(at, who, 'end', { queue, fence, lastHeld, how: 'returned' });
const holds = (at: number, who: string, fence: number, lastHeld: number): Line =>
  line(at, who, 'holds', { held: [{ queue: 'work', fence, lastHeld }] });
const accepted = (at: number, id: string, fence: number): Line =>
  line(at, 'conductor', 'accepted', { id, outcome: 'completed', key: `k${id}`, fence });
const write = (at: number, by: string, fence: number, thing = 'job:1', taken = true): Line =>
  line(at, 'conductor', 'write', { by, thing, fence, accepted: taken });
const killed = (at: number, victim: string): Line => line(at, 'conductor', 'killed', { victim });
const promoted = (at: number): Line => line(at, 'conductor', 'promoted', { how: 'killed' });

/** A job whose first owner is frozen, loses it, is told when it wakes up, and goes on all the same; a leader; a named lock. */
const CLEAN: Line[] = [
  added('1'),
  take(10, 'worker-1.1', 5),
  write(11, 'worker-1.1', 5),
  holds(15, 'worker-1.1', 5, 14),
  take(100, 'worker-2.1', 7),
  write(101, 'worker-2.1', 7),
  told(110, 'worker-1.1', 5, 14),
  write(112, 'worker-1.1', 5, 'job:1', false),
  end(113, 'worker-1.1', 5, 14),
  end(120, 'worker-2.1', 7, 120),
  line(121, 'worker-2.1', 'completed', { id: '1', fence: 7 }),
  accepted(122, '1', 7),
  take(130, 'leader-1.1', 9, ['leader:chief'], { queue: 'chief' }),
  end(140, 'leader-1.1', 9, 139, 'chief'),
  take(150, 'leader-2.1', 12, ['leader:chief'], { queue: 'chief' }),
  take(160, 'locker-1.1', 20, ['name:ledger']),
  killed(165, 'locker-1.1'),
  take(2165, 'locker-2.1', 22, ['name:ledger']),
];

const inOrder = (lines: Line[]): Line[] => lines.toSorted((a, b) => a.at - b.at);
const rules = (...lines: Line[]): string[] => judge(inOrder(lines)).violations.map(({ rule }) => rule);
/** The clean history without the lines that others take the place of. */
const without = (...events: string[]): Line[] => CLEAN.filter(({ event }) => !events.includes(event));

test('a history in which every promise was kept: no violation, and its figures', () => {
  const { violations, losses, figures } = judge(inOrder(CLEAN));
  expect(violations).toEqual([]);
  expect(losses).toEqual([]);
  expect(figures).toMatchObject({ acknowledged: 1, runs: 2, completed: 1, terms: 2, namedLocks: 2, told: 1, refusedWrites: 1 });
  expect(figures.overlaps, 'the first owner went on').toBe(1);
  expect(figures.recoveries).toEqual({ job: [], name: [2000], leader: [] });
});

test('an acknowledged job that is nowhere', () => {
  expect(rules(...CLEAN, added('2'))).toEqual(['lost']);
  expect(
    rules(...CLEAN, added('2'), line(999, 'conductor', 'kept', { list: 'completed', jobs: [{ id: '2', key: 'k2' }] })),
  ).toEqual([]);
});

test('a job that has not come to its end', () => {
  expect(
    rules(...CLEAN, added('2'), line(999, 'conductor', 'kept', { list: 'waiting', jobs: [{ id: '2', key: 'k2' }] })),
  ).toEqual(['unfinished']);
});

test('two accepted finishes', () => {
  expect(rules(...CLEAN, accepted(130, '1', 7))).toEqual(['finished twice']);
});

test('a finish that was acknowledged to the worker and does not stand', () => {
  expect(rules(...CLEAN, line(130, 'worker-1.1', 'completed', { id: '1', fence: 5 }))).toEqual(['finish not kept']);
});

test('an accepted finish of an owner of the past', () => {
  expect(rules(...without('accepted', 'completed'), accepted(122, '1', 5))).toEqual(['stale finish']);
});

test('one add that became two jobs', () => {
  expect(rules(...CLEAN, take(200, 'worker-1.1', 30, ['job:2']), end(201, 'worker-1.1', 30, 201))).toEqual(['added twice']);
});

test('one id that two jobs were given', () => {
  const again = line(30, 'producer-1.1', 'added', { jobs: [{ id: '1', key: 'another' }] });
  const done = line(140, 'conductor', 'accepted', { id: '1', outcome: 'completed', key: 'another', fence: 7 });
  expect(rules(...CLEAN, again)).toEqual(['lost', 'same id']);
  expect(rules(...CLEAN, again, done)).toEqual(['same id']);
});

test('a job that failed for no reason of its own', () => {
  const failed = line(130, 'conductor', 'accepted', {
    id: '2',
    outcome: 'failed',
    reason: 'job stalled more than allowable limit',
  });
  expect(rules(...CLEAN, added('2'), failed)).toEqual(['failed for no reason']);
});

test('more starts than two windows of the rate have room for, and no fewer', () => {
  const started = (count: number, everyMs: number): Line[] =>
    Array.from({ length: count }, (_, n) =>
      take(1000 + n, 'worker-1.1', 100 + n, [`job:r${n}`], { startedOn: 5000 + n * everyMs }),
    );
  const ends = (count: number): Line[] => Array.from({ length: count }, (_, n) => end(2000 + n, 'worker-1.1', 100 + n, 1999));
  const rated = (count: number, everyMs: number): string[] =>
    rules(...CLEAN, ...started(count, everyMs), ...ends(count)).filter((rule) => rule.includes('rate'));
  // Four in 200 ms: the end of one window and the beginning of the next have room for eight.
  expect([rated(8, 1), rated(9, 1), rated(9, 26)]).toEqual([[], ['rate over its limit'], []]);
  // Over many windows, a rate that is too high by a half is found.
  expect([rated(40, 50), rated(40, 34)]).toEqual([[], ['rate over its limit']]);
});

test('three handlers of a group that hold their locks at the same moment', () => {
  const ofGroup = (at: number, who: string, fence: number, lastHeld: number, group = 'work/g1'): Line[] => [
    take(at, who, fence, [`job:${fence}`], { key: `k${fence}`, group }),
    holds(lastHeld, who, fence, lastHeld),
    end(lastHeld + 50, who, fence, lastHeld),
  ];
  const two = [...ofGroup(300, 'worker-1.1', 40, 400), ...ofGroup(310, 'worker-1.1', 41, 350)];
  // The second has lost its lock when the third begins, although its handler goes on.
  expect(rules(...CLEAN, ...two, ...ofGroup(360, 'worker-2.1', 42, 380))).toEqual([]);
  expect(rules(...CLEAN, ...two, ...ofGroup(320, 'worker-2.1', 42, 380, 'work/g2'))).toEqual([]);
  expect(rules(...CLEAN, ...two, ...ofGroup(340, 'worker-2.1', 42, 380))).toEqual(['group over its limit']);
});

test.each([
  ['a job', 'job:9'],
  ['a key of jobs', 'key:k'],
  ['a deduplication id', 'unique:u'],
  ['a named lock', 'name:printer'],
  ['leadership', 'leader:x'],
])('two holders of %s, of whom the first still reads its lock as held', (_, thing) => {
  const two = (lastHeld: number): Line[] => [
    take(300, 'worker-1.1', 40, [thing], { key: 'k9' }),
    holds(lastHeld, 'worker-1.1', 40, lastHeld),
    take(400, 'worker-2.1', 41, [thing], { key: 'k9' }),
  ];
  expect(rules(...CLEAN, ...two(399))).toEqual([]);
  expect(rules(...CLEAN, ...two(402))).toEqual(['two holders']);
});

test('a job that was kept for its owner and is nowhere after the owner has ended', () => {
  const adding = (at: number, key: string): Line =>
    line(at, 'producer-1.1', 'adding', { keys: [key], unique: [{ key, id: 'u' }] });
  const kept = (at: number, key: string): Line => line(at, 'producer-1.1', 'deduplicated', { jobs: [{ id: '1', key }] });
  // The run of fence 7 began at 100, ended at 120, and its finish was accepted.
  const drafts = [adding(102, 'd1'), kept(103, 'd1'), adding(104, 'd2'), kept(105, 'd2')];
  const run = (key: string): Line[] => [take(200, 'worker-1.1', 30, ['job:2'], { key }), end(201, 'worker-1.1', 30, 201)];
  expect(rules(...CLEAN, ...drafts)).toEqual(['draft lost', 'draft lost']);
  expect(rules(...CLEAN, ...drafts, ...run('d1')), 'the last one is d2').toEqual(['draft lost']);
  expect(rules(...CLEAN, ...drafts, ...run('d2'))).toEqual([]);
  // One that was sent and never answered may have come last.
  expect(rules(...CLEAN, ...drafts, adding(106, 'd3'), ...run('d3'))).toEqual([]);
  // Kept or not: the run had not begun yet, or had ended already.
  expect(rules(...CLEAN, adding(99, 'd1'), kept(103, 'd1'))).toEqual([]);
  expect(rules(...CLEAN, adding(119, 'd1'), kept(121, 'd1'))).toEqual([]);
});

test('a smaller fence that begins later, and is held', () => {
  const late = (held: boolean): Line => take(500, 'worker-1.1', 40, ['name:printer'], { held });
  const greater = [take(400, 'worker-2.1', 41, ['name:printer']), end(410, 'worker-2.1', 41, 410)];
  expect(rules(...CLEAN, ...greater, late(false))).toEqual([]);
  expect(rules(...CLEAN, ...greater, late(true))).toEqual(['two holders']);
});

test('two holders with the same fence, two leaders of one term', () => {
  expect(rules(...CLEAN, take(300, 'worker-1.1', 7, ['job:9'], { key: 'k9' }))).toEqual(['same fence']);
  expect(rules(...CLEAN, take(300, 'leader-3.1', 12, ['leader:chief'], { queue: 'chief' }))).toContain('same fence');
});

test('a lock that comes back after its holder was told', () => {
  expect(rules(...without('end'), end(113, 'worker-1.1', 5, 112))).toContain('held again');
});

test('a fenced resource that takes the write of an old fence', () => {
  expect(rules(...CLEAN, write(130, 'worker-1.1', 5))).toEqual(['stale write accepted']);
  expect(rules(...CLEAN, write(200, 'leader-2.1', 12, 'leader:chief'), write(201, 'leader-1.1', 9, 'leader:chief'))).toEqual([
    'stale write accepted',
  ]);
});

test.each(['ended by itself', 'did not close', 'failed to close'])('a process that %s', (event) => {
  expect(rules(...CLEAN, line(130, 'conductor', event, { victim: 'worker-1.1' }))).toEqual([event]);
});

test('what an asynchronous replica lost is counted apart, near a promotion only', () => {
  const near = judge(inOrder([...CLEAN, added('2', 900), promoted(1000)]));
  expect(near.violations).toEqual([]);
  expect(near.losses.map(({ rule }) => rule)).toEqual(['lost']);
  expect(rules(...CLEAN, added('2', 900), promoted(60_000))).toEqual(['lost']);
});

test('fences that went back, and writes of old fences, are not forgiven to a replica', () => {
  const later = take(40_000, 'worker-1.2', 21, ['job:9'], { key: 'k9' });
  expect(rules(...CLEAN, promoted(3000), later)).toEqual(['fence went back']);
  expect(rules(...CLEAN, promoted(3000), { ...later, fence: 23 })).toEqual([]);
  expect(rules(...CLEAN, promoted(130), write(131, 'worker-1.1', 5))).toEqual(['stale write accepted']);
});

test('a violation is shown with the lines that it rests on and the faults of those whom it concerns', () => {
  const history = inOrder([
    ...CLEAN,
    line(90, 'conductor', 'fault', { kind: 'half-open', target: 'line of worker-1' }),
    line(91, 'conductor', 'fault', { kind: 'kill', target: 'producer-2' }),
    holds(111, 'worker-1.1', 5, 104),
  ]);
  const [violation] = judge(history).violations;
  const shown = excerpt(history, violation as { concerns: object }).join('\n');
  expect(violation).toMatchObject({ rule: 'two holders', text: expect.stringContaining('4 ms after') as string });
  expect(shown).toContain('take things=["job:1"] fence=5');
  expect(shown).toContain('take things=["job:1"] fence=7');
  expect(shown).toContain('half-open');
  expect(shown).not.toContain('producer-2');
});

const beat = (at: number, moment: number, change = 'made'): Line =>
  line(at, 'conductor', 'slot', { id: `work/repeat:beat:${moment}`, change });
const ran = (at: number, moment: number): Line =>
  line(at, 'conductor', 'accepted', { id: `work/repeat:beat:${moment}`, outcome: 'completed', fence: 100 + moment });
const atEnd = (state = 'running', lateMs = 0): Line =>
  line(9000, 'conductor', 'schedule', { schedule: 'work/repeat:beat', state, lateMs });
const SCHEDULED: Line[] = [
  ...CLEAN,
  line(1, 'producer-1.1', 'scheduled', { schedule: 'work/repeat:beat', everyMs: 1000 }),
  ...[1000, 2000, 3000].flatMap((moment) => [beat(moment + 1, moment), ran(moment + 5, moment)]),
  line(9001, 'conductor', 'drained', { left: 0 }),
];

test('a schedule that made one job for each slot, and was paused at the end', () => {
  expect(rules(...SCHEDULED, beat(4001, 4000), beat(9000.5, 4000, 'gone'), atEnd())).toEqual([]);
  // An upsert replaced the next job.
  expect(rules(...SCHEDULED, beat(4001, 4000), beat(4002, 4000, 'gone'), beat(4003, 4000), ran(4004, 4000), atEnd())).toEqual([]);
});

test('a slot that got two jobs', () => {
  expect(rules(...SCHEDULED, beat(3500, 3000), atEnd())).toEqual(['slot twice']);
});

test('a slot that got no job', () => {
  expect(rules(...SCHEDULED, beat(5001, 5000), ran(5002, 5000), atEnd())).toEqual(['slot missing']);
});

test('a slot whose job is nowhere', () => {
  expect(rules(...SCHEDULED, beat(4001, 4000), atEnd())).toEqual(['slot lost']);
});

test('a schedule that did not go on after the faults', () => {
  expect(rules(...SCHEDULED, atEnd('owing', 5000))).toEqual(['schedule stopped']);
  expect(rules(...SCHEDULED, atEnd('running', 5000))).toEqual(['schedule stopped']);
  expect(rules(...SCHEDULED)).toEqual(['schedule stopped']);
});

/** A flow of a root and a child that has completed before the root began. */
const FLOW: Line[] = [
  line(300, 'producer-1.1', 'flow', {
    nodes: [
      { id: 'root', children: ['child'] },
      { id: 'child', children: [] },
    ],
  }),
  take(310, 'worker-1.1', 31, ['job:child'], { key: 'kchild', queue: 'steps' }),
  end(320, 'worker-1.1', 31, 320, 'steps'),
  accepted(325, 'child', 31),
  take(330, 'worker-2.1', 33, ['job:root'], { key: 'kroot' }),
  end(340, 'worker-2.1', 33, 340),
  accepted(345, 'root', 33),
];
const failedFor = (at: number, id: string, reason = 'on purpose'): Line =>
  line(at, 'conductor', 'accepted', { id, outcome: 'failed', reason });
const letters = (...origins: string[]): Line => line(400, 'conductor', 'letters', { origins });
const flowWithout = (...events: [string, string?][]): Line[] =>
  FLOW.filter(({ event, id }) => !events.some(([name, of]) => name === event && (of === undefined || of === id)));

test('a flow whose root began after its child had ended', () => {
  expect(rules(...FLOW, letters())).toEqual([]);
  expect(
    judge(inOrder([...FLOW, line(301, 'producer-1.1', 'added', { jobs: [{ id: 'root', key: 'kroot' }] })])).figures,
  ).toMatchObject({
    flows: 1,
  });
});

test('a root that began while its child was running, or had not ended', () => {
  const late = take(315, 'worker-2.1', 30, ['job:root'], { key: 'kroot' });
  expect(rules(...FLOW, late, end(316, 'worker-2.1', 30, 316))).toEqual(['parent before its children']);
  const kept = line(999, 'conductor', 'kept', { list: 'waiting', jobs: [{ id: 'child', key: 'kchild' }] });
  const neverRan = FLOW.filter(({ things, id, fence }) => fence !== 31 && id !== 'child' && !String(things).includes('child'));
  expect(rules(...neverRan, kept)).toEqual(['unfinished', 'parent before its children']);
});

test('a root whose child, or whose end, the store has lost before the root began', () => {
  const gone = flowWithout(['accepted', 'child']);
  const again = [
    take(400, 'worker-1.1', 41, ['job:child'], { key: 'kchild', queue: 'steps' }),
    end(410, 'worker-1.1', 41, 410, 'steps'),
  ];
  for (const history of [gone, [...gone, ...again, accepted(415, 'child', 41)]]) {
    expect(rules(...history)).toEqual(['child lost before its parent began']);
    expect(judge(inOrder([...history, promoted(322)])).violations).toEqual([]);
    expect(judge(inOrder([...history, promoted(322)])).losses).toMatchObject([{ rule: 'child lost before its parent began' }]);
  }
});

test('a root that began before its child had run is a violation also where a replica took over', () => {
  const late = take(315, 'worker-2.1', 30, ['job:root'], { key: 'kroot' });
  expect(rules(...FLOW, late, end(316, 'worker-2.1', 30, 316), promoted(317))).toEqual(['parent before its children']);
});

test('a root that still waits for its children after the calm', () => {
  const kept = line(999, 'conductor', 'kept', { list: 'waiting-children', jobs: [{ id: 'root', key: 'kroot' }] });
  expect(rules(...flowWithout(['accepted', 'root'], ['take'], ['end']), kept)).toEqual(['unfinished']);
});

test('a failure of a flow without a letter, with two, and a letter without a failure', () => {
  const failing = [...flowWithout(['accepted', 'child']), failedFor(325, 'child')];
  expect(rules(...failing, letters('child'))).toEqual([]);
  expect(rules(...failing, letters())).toEqual(['letter missing']);
  expect(rules(...failing, letters('child', 'child'))).toEqual(['letter twice']);
  expect(rules(...FLOW, letters('child'))).toEqual(['letter twice']);
});

test('a root that a child fails, without a run', () => {
  const doomed = [
    ...flowWithout(['accepted'], ['take'], ['end']),
    failedFor(325, 'child'),
    failedFor(330, 'root', 'child steps:child failed'),
  ];
  expect(rules(...doomed, letters('child', 'root'))).toEqual([]);
});

test('a step that is done again after its record was acknowledged', () => {
  const done = (at: number, who: string, fence: number, key = 'k'): Line =>
    line(at, who, 'step', { id: '1', name: 'charge', key, fence });
  const recorded = line(13, 'worker-1.1', 'step recorded', { id: '1', name: 'charge', fence: 5 });
  // The first run died between effect and record, or goes on without knowing that it has lost its job.
  expect(rules(...CLEAN, done(12, 'worker-1.1', 5), done(102, 'worker-2.1', 7))).toEqual([]);
  expect(rules(...CLEAN, { ...recorded, fence: 7 }, done(102, 'worker-1.1', 5))).toEqual([]);
  expect(rules(...CLEAN, done(12, 'worker-1.1', 5), recorded, done(102, 'worker-2.1', 7))).toEqual(['step done again']);
  expect(rules(...CLEAN, done(12, 'worker-1.1', 5), done(102, 'worker-2.1', 7, 'another'))).toEqual(['step with two keys']);
});

test('a job that begins after it was cancelled', () => {
  const cancelled = (at: number, event = 'cancelled'): Line => line(at, 'producer-1.1', event, { id: '1' });
  // It was granted before.
  expect(rules(...CLEAN, cancelled(99))).toEqual([]);
  expect(rules(...CLEAN, cancelled(-7000))).toEqual(['ran after its cancel', 'ran after its cancel']);
  expect(rules(...CLEAN, cancelled(98), cancelled(99, 'cancelled, ended'))).toEqual(['ran after its cancel']);
});

test('a job that fails because it was cancelled', () => {
  const failed = line(130, 'conductor', 'accepted', { id: '2', outcome: 'failed', reason: 'cancelled: by chaos' });
  expect(rules(...CLEAN, added('2'), failed)).toEqual(['failed for no reason']);
  expect(rules(...CLEAN, added('2'), line(120, 'producer-1.1', 'cancelling', { id: '2' }), failed)).toEqual([]);
});
