// Named moments of a test, in the order in which they happened, and waiting for one that has not happened yet.
import type { EventEmitter } from 'node:events';
import { paced } from './pace.js';

export interface Moment {
  event: string;
  /** Milliseconds of the monotonic clock, which all processes of this host share. */
  at: number;
  [field: string]: unknown;
}

type Filter = (moment: Moment) => boolean;

interface Waiter {
  event: string;
  filter: Filter;
  resolve(moment: Moment): void;
}

const PATIENCE_MS = paced(20_000);

export function monotonicNow(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

export class MomentLog {
  readonly moments: Moment[] = [];
  #waiters: Waiter[] = [];

  happen(event: string, fields: Record<string, unknown> = {}, at = monotonicNow()): void {
    const moment: Moment = { ...fields, event, at };
    this.moments.push(moment);
    const reached = this.#waiters.filter((waiter) => waiter.event === event && waiter.filter(moment));
    this.#waiters = this.#waiters.filter((waiter) => !reached.includes(waiter));
    for (const { resolve } of reached) resolve(moment);
  }

  all(event: string, filter: Filter = () => true): Moment[] {
    return this.moments.filter((moment) => moment.event === event && filter(moment));
  }

  /** The first such moment, past or to come. Rejects with all that did happen when it does not come. */
  moment(event: string, filter: Filter = () => true): Promise<Moment> {
    const past = this.all(event, filter)[0];
    if (past !== undefined) return Promise.resolve(past);
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`"${event}" did not happen. What did:\n${this.toString()}`)), PATIENCE_MS);
      this.#waiters.push({
        event,
        filter,
        resolve: (moment) => {
          clearTimeout(timer);
          resolve(moment);
        },
      });
    });
  }

  toString(): string {
    return this.moments.map((moment) => JSON.stringify(moment)).join('\n');
  }
}

/** Notes events of an emitter of this process: their arguments become `args`, errors and jobs shortened to what tests look at. */
export function listenTo(emitter: EventEmitter, events: string[]): MomentLog {
  const log = new MomentLog();
  for (const event of events) emitter.on(event, (...args: unknown[]) => log.happen(event, { args: args.map(plain) }));
  return log;
}

export const WORKER_EVENTS = [
  'active',
  'completed',
  'failed',
  'stalled',
  'error',
  'locksRenewed',
  'lockRenewalFailed',
  'ready',
  'closing',
  'closed',
];

function plain(argument: unknown): unknown {
  if (argument instanceof Error) return { message: argument.message, code: (argument as { code?: unknown }).code };
  if (typeof argument === 'object' && argument !== null && 'lock' in argument) return { id: (argument as { id?: unknown }).id };
  return argument;
}

export function messageOf(moment: Moment): string {
  const [error] = moment['args'] as [{ message?: string } | undefined];
  return error?.message ?? '';
}

/** The messages of the `error` events that contain a text. */
export function errorsWith(log: MomentLog, text: string): string[] {
  return log
    .all('error')
    .map(messageOf)
    .filter((message) => message.includes(text));
}
