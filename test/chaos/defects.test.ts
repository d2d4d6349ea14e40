import { rmSync } from 'node:fs';
import { expect, test } from 'vitest';
import { FULL } from '../support/run/matrix.js';
import { chaos, LIMIT, SHORT } from './program.js';

// test/chaos/judge.test.ts holds the judge in the gate.
test.runIf(FULL)(
  'on a store that forgets renewals, jobs, slots, limits of groups, rates and steps, all are found',
  LIMIT,
  async () => {
    const { code, output } = await chaos('--store', 'sqlite', '--defects', '--seed', '1', ...SHORT);
    expect(output).toMatch(/^two holders: /m);
    expect(output).toMatch(/^ +\d+ {2}lost$/m);
    expect(output).toMatch(/^ +\d+ {2}slot missing$/m);
    expect(output).toMatch(/^ +\d+ {2}group over its limit$/m);
    expect(output).toMatch(/^ +\d+ {2}rate over its limit$/m);
    expect(output).toMatch(/^ +\d+ {2}step done again$/m);
    expect(code).toBe(1);
    rmSync(/^The history is in (\S+):/m.exec(output)?.[1] ?? '', { recursive: true, force: true });
  },
);
