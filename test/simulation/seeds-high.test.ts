import { expect, it } from 'vitest';
import { simulate } from './seeds.js';

it('no invariant is violated by the seeds from 1,001 to 2,000', { timeout: 600_000 }, async () => {
  const { code, output } = await simulate('--seed', '1001', '--runs', '1000');
  expect(output).toMatch(/^violations {2}0$/m);
  expect(code).toBe(0);
});
