import { randomInt } from 'node:crypto';
import { expect, it } from 'vitest';
import { FULL } from '../support/run/matrix.js';
import { sayOnFailure } from '../support/run/seed.js';
import { simulate } from './seeds.js';

const patience = { timeout: 600_000 };

it.runIf(FULL)('no invariant is violated by the seeds from 1,001 to 2,000', patience, async () => {
  const { code, output } = await simulate('--seed', '1001', '--runs', '1000');
  expect(output).toMatch(/^violations {2}0$/m);
  expect(code).toBe(0);
});

// The output of a failure has the command that shows it again.
it.runIf(FULL)('no invariant is violated by a hundred seeds that no run has had before', patience, async () => {
  const first = process.env['HOLDFAST_SEED'] ?? String(randomInt(10_000, 2 ** 40));
  sayOnFailure(`HOLDFAST_SEED=${first}`);
  const { code, output } = await simulate('--seed', first, '--runs', '100');
  expect(output).toMatch(/^violations {2}0$/m);
  expect(code).toBe(0);
});
