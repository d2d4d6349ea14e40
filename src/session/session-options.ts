// What may be said about how locks are kept, with BullMQ's names: workers, queues and leaders take these options alike.
import { checkBoolean, checkInteger, checkText, invalidOption, MAX_TIMER_MS } from '../runtime/check.js';
import { CRASH_GRACE_MS } from '../store/contract/index.js';

export interface SessionOptions {
  lockDuration?: number;
  lockRenewTime?: number;
  stalledInterval?: number;
  maxStalledCount?: number;
  skipStalledCheck?: boolean;
  /** Renew in a thread of its own (true), or on the event loop. Stores that only this process can reach are renewed on the loop. */
  useDedicatedLockThread?: boolean;
  /** Entry file of the thread, for bundles: `holdfast/lock-thread` copied beside them. */
  lockThreadEntry?: string;
  /** Give the locks up when the event loop has been blocked for so long. 0: never. */
  maxBlockedMs?: number;
  /** How long the sessions of this process are left, after it died, before what they held moves on. */
  crashGraceMs?: number;
  /** A name for this running program among the others; one that nobody else has is made for each process. */
  instanceId?: string;
}

export const SESSION_OPTION_NAMES: { readonly [K in keyof Required<SessionOptions>]: true } = {
  lockDuration: true,
  lockRenewTime: true,
  stalledInterval: true,
  maxStalledCount: true,
  skipStalledCheck: true,
  useDedicatedLockThread: true,
  lockThreadEntry: true,
  maxBlockedMs: true,
  crashGraceMs: true,
  instanceId: true,
};

type Optional = 'lockThreadEntry' | 'instanceId';
export type CheckedSessionOptions = Required<Omit<SessionOptions, Optional>> & Pick<SessionOptions, Optional>;

const MAX_INSTANCE_ID = 200;

export function checkSessionOptions(given: SessionOptions): CheckedSessionOptions {
  const lockDuration = checkLockDuration('lockDuration', given.lockDuration ?? 30_000);
  const { instanceId, lockThreadEntry } = given;
  if (lockThreadEntry !== undefined && typeof lockThreadEntry !== 'string') {
    throw invalidOption('lockThreadEntry', lockThreadEntry, 'the path of a file');
  }
  return {
    lockDuration,
    lockRenewTime: checkRenewTime('lockRenewTime', given.lockRenewTime, 'lockDuration', lockDuration),
    stalledInterval: checkInteger('stalledInterval', given.stalledInterval ?? 30_000, { min: 1, max: MAX_TIMER_MS }),
    maxStalledCount: checkInteger('maxStalledCount', given.maxStalledCount ?? 1),
    skipStalledCheck: checkBoolean('skipStalledCheck', given.skipStalledCheck ?? false),
    useDedicatedLockThread: checkBoolean('useDedicatedLockThread', given.useDedicatedLockThread ?? true),
    maxBlockedMs: checkInteger('maxBlockedMs', given.maxBlockedMs ?? 0, { max: MAX_TIMER_MS }),
    crashGraceMs: checkInteger('crashGraceMs', given.crashGraceMs ?? CRASH_GRACE_MS, { max: MAX_TIMER_MS }),
    ...(lockThreadEntry === undefined ? {} : { lockThreadEntry }),
    ...(instanceId === undefined ? {} : { instanceId: checkText('instanceId', instanceId, MAX_INSTANCE_ID) }),
  };
}

export function checkLockDuration(option: string, value: unknown): number {
  return checkInteger(option, value, { min: 10, max: MAX_TIMER_MS });
}

/** Half of the duration unless said otherwise. */
export function checkRenewTime(option: string, given: unknown, durationOption: string, durationMs: number): number {
  const renewMs = checkInteger(option, given ?? Math.floor(durationMs / 2), { min: 1, max: MAX_TIMER_MS });
  if (renewMs < durationMs) return renewMs;
  throw invalidOption(option, renewMs, `below ${durationOption} (${durationMs}), or locks end before they are renewed`);
}
