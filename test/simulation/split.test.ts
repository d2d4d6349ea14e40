// The same product on two servers that fail apart, each with some of the queues: flows must cross from one to the other, and the product's own
// relays (src/store/redis/state/relays.ts) carry them.
import { describe, expect, it } from 'vitest';
import { planOf } from '../../simulation/plan.mjs';
import { run } from '../../simulation/run.mjs';
import { FULL } from '../support/run/matrix.js';
import { paced } from '../support/wait/pace.js';
import { defectsOf, find } from './finding.js';
import { simulate } from './seeds.js';

const store = 'split';
const RUNS = FULL ? 1000 : 100;
const SEEDS = 600;
const BETWEEN_SERVERS = [
  'no process relays what another process has left',
  'no sweep asks after the children of a parent that has waited for long',
  'a message is deleted before it is applied',
  'a message is applied as often as it comes',
  'a child on the other server has no link',
  'a finish of a stale owner is told to the parent',
  'the first child that completes releases its parent',
];

it(`no invariant is violated on two servers by the seeds from 1 to ${RUNS}`, { timeout: 600_000 }, async () => {
  const { code, output } = await simulate('--store', store, '--runs', String(RUNS));
  expect(output).toMatch(/^violations {2}0$/m);
  expect(output).toMatch(/ \d+ {2}outage$/m);
  expect(output).toMatch(/ \d+ {2}failover$/m);
  expect(code).toBe(0);
});

it('a run on two servers is the same each time', { timeout: paced(120_000) }, async () => {
  const plan = planOf(5, store);
  expect(await run(plan, { store })).toEqual(await run(plan, { store }));
});

describe('on two servers, the simulation finds', () => {
  it.each(defectsOf(BETWEEN_SERVERS))('%s', { timeout: 300_000 }, async (name, defect) => {
    const found = await find(name, defect, { seeds: SEEDS, store });
    expect([defect.violates].flat()).toContain(found?.invariant);
  });
});
