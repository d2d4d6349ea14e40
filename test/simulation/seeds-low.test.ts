import { expect, it } from 'vitest';
import { FULL } from '../support/run/matrix.js';
import { simulate } from './seeds.js';

const RUNS = FULL ? 1000 : 300;

it(`no invariant is violated by the seeds from 1 to ${RUNS}`, { timeout: 600_000 }, async () => {
  const { code, output } = await simulate('--seed', '1', '--runs', String(RUNS));
  expect(output).toMatch(/^violations {2}0$/m);
  expect(code).toBe(0);
});
