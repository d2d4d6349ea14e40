import { expect, test } from 'vitest';
import { paced } from '../support/wait/pace.js';
import { chaos, inTurn, SHORT } from './program.js';

/** The second net repairs what a failover has lost of a flow after a minute, and a run waits for it. */
const LIMIT = { timeout: paced(300_000) };

test.runIf(inTurn('redis-cluster'))('a short run on a Redis Cluster whose slots fail over breaks no promise', LIMIT, async () => {
  const { code, output } = await chaos('--store', 'redis-cluster', '--seed', '4', ...SHORT);
  expect(output).toContain('No violation.');
  expect(output).toMatch(/^ +\d+ {2}failover of a slot/m);
  expect(Number(/^flows +(\d+) acknowledged$/m.exec(output)?.[1])).toBeGreaterThan(0);
  expect(Number(/(\d+) completed/.exec(output)?.[1])).toBeGreaterThan(0);
  expect(output).toMatch(/^calm +all done /m);
  expect(code).toBe(0);
});
