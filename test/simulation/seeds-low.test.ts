import { expect, it } from 'vitest';
import { simulate } from './seeds.js';

// Together with the other file of seeds: two thousand, in a minute on two cores that have nothing else to do.
it('no invariant is violated by the seeds from 1 to 1,000', { timeout: 600_000 }, async () => {
  const { code, output } = await simulate('--seed', '1', '--runs', '1000');
  expect(output).toMatch(/^violations {2}0$/m);
  expect(code).toBe(0);
});
