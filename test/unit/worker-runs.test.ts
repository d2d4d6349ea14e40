import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { JobContext } from '../../src/handle/job-context.js';
import type { ClaimedJob } from '../../src/job/record.js';
import { LockTable } from '../../src/session/lock-table.js';
import type { CallReply } from '../../src/store/client/session-calls.js';
import type { WorkerContext } from '../../src/worker/context.js';
import { Outbox } from '../../src/worker/outbox.js';
import { Runner } from '../../src/worker/runner.js';
import { Runs } from '../../src/worker/runs.js';
import { Slots } from '../../src/worker/slots.js';
import { openSession } from '../support/scenes/locks.js';

/** Longer than jobs of one claim may begin in one turn of the loop. */
const SLOW_MS = 12;

/** Notes what it is told about further jobs. The first job takes long to begin. */
class SlowRunner extends Runner {
  readonly ran: string[] = [];
  readonly heard: (boolean | undefined)[] = [];

  constructor() {
    super({ processor: () => undefined, rules: {}, maxStartedAttempts: undefined });
  }

  override run({ id }: { id: string }): void {
    const until = performance.now() + SLOW_MS;
    while (this.ran.length === 0 && performance.now() < until);
    this.ran.push(id);
  }

  override gathered(more?: boolean): boolean {
    this.heard.push(more);
    return true;
  }
}

test('the last reply says whether there are more jobs, also if jobs of the claim before it begin later', async () => {
  const session = await openSession(10_000);
  const table = new LockTable({ onLost: () => undefined });
  const context = {
    name: 'q',
    opts: { skipLockRenewal: false },
    slots: new Slots(10),
    table,
    owner: { grow: () => undefined },
    emitter: { emit: () => true },
  } as unknown as WorkerContext;
  const runner = new SlowRunner();
  const runs = new Runs(context, { name: 'q' } as JobContext, runner, new Outbox());
  const job = (id: string, fence: number) =>
    ({ id, name: 'n', data: '{}', opts: '{}', token: `${session.id}:${fence}`, fence }) as ClaimedJob;
  const reply = { session, sentAt: 0 } as CallReply;
  runs.accept([job('a', 1), job('b', 2)], reply, true);
  runs.accept([job('c', 3)], reply, false);
  expect(runner.ran).toEqual(['a']);
  while (runner.ran.length < 3) await turn();
  expect(runner.heard.at(-1)).toBe(false);
  for (const lock of table.locks()) table.untrack(lock);
});
