// onSignals with signals that this process only pretends to get. The end of a process is in test/acceptance/s8-deploys.test.ts.
import { afterEach, expect, onTestFinished, test } from 'vitest';
import { Queue } from '../../src/queue/queue.js';
import { MemoryStore } from '../../src/store/memory/index.js';
import { type Closable, onSignals, type OnSignalsOptions } from '../../src/worker/on-signals.js';
import { Worker } from '../../src/worker/worker.js';
import { newGate } from '../support/wait/gate.js';
import { until } from '../support/wait/until.js';

/** A signal that no test runner uses. */
const SIGNAL = 'SIGUSR2';
const TERMS: OnSignalsOptions = { signals: [SIGNAL], exit: false };
const raise = (): boolean => process.emit(SIGNAL, SIGNAL);
const listeners = (): number => process.listenerCount(SIGNAL);

afterEach(() => {
  process.exitCode = undefined;
});

test('closes workers first, interrupts their jobs after timeoutMs, and then closes the rest', async () => {
  const connection = new MemoryStore();
  const queue = new Queue('mail', { connection });
  const { id } = await queue.add('endless', {});
  const begun = newGate();
  const worker = new Worker(
    'mail',
    (_job, _token, signal) => {
      begun.open();
      return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)));
    },
    { connection },
  );
  const closed: string[] = [];
  worker.on('interrupted', (job) => closed.push(`job ${job.id}`));
  worker.on('closed', () => closed.push('worker'));
  const last: Closable = { close: async () => void closed.push(await queue.getJobState(id)) };
  onSignals([last, worker], { ...TERMS, timeoutMs: 20 });
  await begun.opened;
  raise();
  await until('all to be closed', () => listeners() === 0);
  expect(closed).toEqual([`job ${id}`, 'worker', 'waiting']);
  expect(process.exitCode).toBeUndefined();
  await queue.close();
});

test('closes the rest although one of them fails, warns of it, and sets the exit code', async () => {
  const warnings: string[] = [];
  const onWarning = (warning: Error & { code?: string }): void => void warnings.push(`${warning.code}: ${warning.message}`);
  process.on('warning', onWarning);
  onTestFinished(() => void process.off('warning', onWarning));
  let closed = 0;
  const broken = {
    name: 'mail',
    close: () => {
      throw new Error('no connection');
    },
  };
  onSignals([broken, { close: () => Promise.reject(new Error('x')) }, { close: () => void (closed += 1) }], TERMS);
  raise();
  await until('the handlers to be gone', () => listeners() === 0);
  expect(closed).toBe(1);
  expect(process.exitCode).toBe(1);
  await until('the warnings', () => warnings.length === 2);
  expect(warnings[0]).toBe('HOLDFAST_CLOSE_FAILED: onSignals could not close the Object of mail: no connection');
});

test('closes nothing after its handlers were removed', () => {
  let closed = 0;
  const remove = onSignals({ close: () => (closed += 1) }, TERMS);
  expect(listeners()).toBe(1);
  remove();
  expect(raise()).toBe(false);
  expect(closed).toBe(0);
});

test.each([
  ['closables', undefined, {}],
  ['closables', [{}], {}],
  ['closables', 'worker', {}],
  ['timeoutMs', [], { timeoutMs: -1 }],
  ['timeoutMs', [], { timeoutMs: '5s' }],
  ['signals', [], { signals: [] }],
  ['signals', [], { signals: ['SIGTREM'] }],
  ['signals', [], { signals: 'SIGTERM' }],
  ['signals', [], { signals: ['SIGKILL'] }],
  ['exit', [], { exit: 1 }],
  ['timoutMs', [], { timoutMs: 5 }],
])('refuses an invalid %s: %j %j, and listens to nothing', (option, closables, options) => {
  const before = process.listenerCount('SIGTERM');
  expect(() => onSignals(closables as Closable[], options as OnSignalsOptions)).toThrow(
    expect.objectContaining({ code: 'INVALID_OPTION', option }),
  );
  expect(process.listenerCount('SIGTERM')).toBe(before);
});
