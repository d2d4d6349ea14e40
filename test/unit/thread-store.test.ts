import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { SessionMemory } from '../../src/session/session-memory.js';
import { ThreadStore } from '../../src/background/thread-store.js';
import { until } from '../support/wait/until.js';

vi.mock('../../src/runtime/timers.js', () => import('../support/wait/process-timers.js'));

const PLAN = { queue: 'q', id: 's', durationMs: 1_000, renewMs: 0, sweepMs: 0, graceMs: 0, maxBlockedMs: 0 };
// A factory that cannot make a store, for another reason from the fourth time on.
const FACTORY = `let tries = 0; export default () => { throw new Error(++tries < 4 ? 'no server' : 'no password'); };`;

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
afterEach(() => void vi.useRealTimers());

test('retries a store that cannot be opened every second, and reports each reason once', async () => {
  const module = `data:text/javascript,${encodeURIComponent(FACTORY)}`;
  const store = new ThreadStore({ engine: 'module', module, export: 'default' });
  const told: string[] = [];
  const nothing = (): void => undefined;
  const failed = (error: unknown): void => void told.push((error as Error).message);
  const reports = {
    ...{ mayRenew: () => true, renewed: nothing, noticed: nothing, lost: nothing, swept: nothing, undone: nothing },
    failed,
  };
  store.keep(new SessionMemory(), PLAN, reports);
  await until('the report', () => told.length > 0);
  expect(told).toEqual(['no server']);
  for (let seconds = 0; seconds < 6; seconds += 1) await vi.advanceTimersByTimeAsync(1_000);
  await store.close();
  expect(told).toEqual(['no server', 'no password']);
});
