import { expect, onTestFinished, test } from 'vitest';
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

/** Longer than the jobs of one claim may begin in one turn of the loop. */
const SLOW_MS = 12;

/** The first job takes long to begin. */
class SlowRunner extends Runner {
  readonly ran: string[] = [];
  override readonly beginsAtOnce: boolean;

  constructor(beginsAtOnce: boolean) {
    super({ processor: () => undefined, rules: {}, maxStartedAttempts: undefined });
    this.beginsAtOnce = beginsAtOnce;
  }

  override run({ id }: { id: string }): void {
    const until = performance.now() + SLOW_MS;
    while (this.ran.length === 0 && performance.now() < until);
    this.ran.push(id);
  }
}

async function acceptThree(runner: SlowRunner): Promise<void> {
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
  const runs = new Runs(context, { name: 'q' } as JobContext, runner, new Outbox());
  const job = (id: string, fence: number) =>
    ({ id, name: 'n', data: '{}', opts: '{}', token: `${session.id}:${fence}`, fence }) as ClaimedJob;
  onTestFinished(() => {
    runs.handBackAhead();
    for (const lock of table.locks()) table.untrack(lock);
  });
  runs.accept([job('a', 1), job('b', 2), job('c', 3)], { session, sentAt: 0 } as CallReply, true);
}

test('jobs whose handlers take long begin in several turns of the loop', async () => {
  const runner = new SlowRunner(true);
  await acceptThree(runner);
  expect(runner.ran).toEqual(['a']);
});

test('all jobs of a claim join their batch in the turn of the claim, however long that takes', async () => {
  const runner = new SlowRunner(false);
  await acceptThree(runner);
  expect(runner.ran).toEqual(['a', 'b', 'c']);
});
