import { rmSync } from 'node:fs';
import { expect, test } from 'vitest';
import { chaos, LIMIT, SHORT } from './program.js';

test('on a store that forgets renewals and jobs, both are found', LIMIT, async () => {
  const { code, output } = await chaos('--store', 'sqlite', '--defects', ...SHORT);
  expect(output).toMatch(/^two holders: /m);
  expect(output).toMatch(/^ +\d+ {2}lost$/m);
  expect(code).toBe(1);
  rmSync(/^The history is in (\S+):/m.exec(output)?.[1] ?? '', { recursive: true, force: true });
});
