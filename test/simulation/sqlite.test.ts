// The same runs on the real SQLite engine, which is slower: fewer seeds, and of the defects those that few seeds find.
import { describe, expect, it } from 'vitest';
import { planOf } from '../../simulation/plan.mjs';
import { run } from '../../simulation/run.mjs';
import { FULL } from '../support/run/matrix.js';
import { defectsOf, find } from './finding.js';
import { simulate } from './seeds.js';
import { paced } from '../support/wait/pace.js';

const store = 'sqlite';
const RUNS = FULL ? 150 : 30;
const SEEDS = 100;
const FOUND_SOON = [
  'a finish by job id alone',
  'a reaped session is renewed',
  'expiry is judged by the wall clock of whoever asks',
  'a sweep does not charge',
  'a job that stalls loses its deduplication id',
  'a step is recorded for a run that has lost its job',
  'a run does not read what the runs before have recorded',
  'a sleep is half as long',
  'any signal ends any sleep',
  'no session asks whether there is a notice for it',
  'a late reply makes trust last from its arrival',
  'a timed claim that is repeated is trusted from its last try on',
  'an extension counts from its reply on',
  'a lock is believed in until somebody says otherwise',
  'a leader leads until it is told otherwise',
  'a finish is told before it is acknowledged',
  'a slot is free before its outcome is acknowledged',
  'a claim is repeated under a new number, and nothing is reconciled',
  'session ids come again with the next start',
  'a job is acknowledged before the store has it',
];

it(`no invariant is violated on SQLite by the seeds from 1 to ${RUNS}`, { timeout: 300_000 }, async () => {
  const { code, output } = await simulate('--store', store, '--runs', String(RUNS));
  expect(output).toMatch(/^violations {2}0$/m);
  expect(code).toBe(0);
});

it('a run on SQLite is the same each time', { timeout: paced(120_000) }, async () => {
  const plan = planOf(5);
  expect(await run(plan, { store })).toEqual(await run(plan, { store }));
});

describe('on SQLite, the simulation finds', () => {
  it.each(defectsOf(FOUND_SOON))('%s', { timeout: 300_000 }, async (name, defect) => {
    const found = await find(name, defect, { seeds: SEEDS, store });
    expect([defect.violates].flat()).toContain(found?.invariant);
  });
});
