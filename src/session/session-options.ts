// The options for locks and their renewal, with BullMQ's names, and their checks. Workers, queues and leaders take the same options.
import { checkBoolean, checkInteger, checkText, invalidOption, MAX_TIMER_MS } from '../runtime/check.js';
import { CRASH_GRACE_MS } from '../store/contract/index.js';

export interface SessionOptions {
  /** How long a session lasts without a renewal, in ms. Default 30,000; at least 10. */
  lockDuration?: number;
  /** Time between two renewals, in ms. Default half of `lockDuration`; must be below it. */
  lockRenewTime?: number;
  /** Time between two sweeps for stalled jobs, in ms. Default 30,000. */
  stalledInterval?: number;
  /** How often a job may stall; the next stall fails it. Default 1. */
  maxStalledCount?: number;
  /** Does not sweep for stalled jobs. Default false. */
  skipStalledCheck?: boolean;
  /** Renews in the lock thread (true, the default) or on the event loop. Stores that only this process can reach always use the loop. */
  useDedicatedLockThread?: boolean;
  /** Path of the thread's entry file, for bundles: `holdfast/lock-thread` copied beside them. */
  lockThreadEntry?: string;
  /** Stops renewing the locks when the event loop has been blocked for this many ms. Default 0: never. */
  maxBlockedMs?: number;
  /** How long the sessions of this process stay alive after a hint that it died, in ms. Default CRASH_GRACE_MS; 0: no grace. */
  crashGraceMs?: number;
  /** Name of this running program. Each running process needs its own; default: an id that is unique per process. */
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

export function checkSessionOptions(given: SessionOptions & { skipLockRenewal?: boolean }): CheckedSessionOptions {
  const lockDuration = checkLockDuration('lockDuration', given.lockDuration ?? 30_000);
  const { instanceId, lockThreadEntry } = given;
  if (lockThreadEntry !== undefined && typeof lockThreadEntry !== 'string') {
    throw invalidOption('lockThreadEntry', lockThreadEntry, 'the path of a file');
  }
  return {
    lockDuration,
    // A worker that renews nothing may give any time.
    lockRenewTime:
      given.skipLockRenewal === true
        ? Math.floor(lockDuration / 2)
        : checkRenewTime('lockRenewTime', given.lockRenewTime, 'lockDuration', lockDuration),
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

/** Returns the renewal interval in ms; half of the duration by default. */
export function checkRenewTime(option: string, given: unknown, durationOption: string, durationMs: number): number {
  const renewMs = checkInteger(option, given ?? Math.floor(durationMs / 2), { min: 1, max: MAX_TIMER_MS });
  if (renewMs < durationMs) return renewMs;
  throw invalidOption(option, renewMs, `below ${durationOption} (${durationMs}), or locks end before they are renewed`);
}
