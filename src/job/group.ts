// Groups: jobs that take turns by group, under limits of each group. The names are those of BullMQ Pro.
import { checkInteger, checkText, invalidOption, MAX_TIMER_MS } from '../runtime/check.js';
import { OptionNames } from '../runtime/option-names.js';

/** The option `group` of a job. */
export interface GroupOptions {
  /** Jobs with the same id belong to one group. A number means its text. */
  id: string | number;
}

/** The option `group` of a worker: limits for each group that has none of its own. They apply to all workers of the queue. */
export interface GroupLimitOptions {
  /** How many jobs of a group may run at once, on all workers together. Default: no limit. */
  concurrency?: number;
  /** How many jobs of a group may start per time. Default: no limit. */
  limit?: GroupRateLimit;
}

export interface GroupRateLimit {
  /** How many jobs of the group may start within `duration`, on all workers of the queue together. */
  max: number;
  /** In ms. */
  duration: number;
}

const MAX_ID = 500;
/** Stores count with 32 bits. */
const MAX_LIMIT = 2 ** 31 - 1;

const JOB_NAMES = new OptionNames<GroupOptions>({
  of: 'job',
  known: { id: true },
  unsupported: {
    priority: 'Use the job option priority: it orders the jobs of a group.',
    maxSize: 'Read queue.getGroupJobsCount(id) before you add the job.',
  },
});

const WORKER_NAMES = new OptionNames<GroupLimitOptions>({ of: 'worker', known: { concurrency: true, limit: true } });
const LIMIT_NAMES = new OptionNames<GroupRateLimit>({ of: 'worker', known: { max: true, duration: true } });

/** Throws INVALID_OPTION or OPTION_UNSUPPORTED. */
export function checkGroup(path: string, value: unknown): void {
  if (!isRecord(value)) throw invalidOption(path, value, '{ id }');
  JOB_NAMES.check(value, path);
  checkGroupId(value['id'], `${path}.id`);
}

/** Returns the id as the store keeps it. */
export function checkGroupId(id: unknown, path = 'groupId'): string {
  if (typeof id !== 'number') return checkText(path, id, MAX_ID);
  if (!Number.isSafeInteger(id)) throw invalidOption(path, id, `a string of 1 to ${MAX_ID} characters or a whole number`);
  return String(id);
}

export function checkGroupConcurrency(value: unknown, path = 'concurrency'): number {
  if (value === 0) throw invalidOption(path, value, `a whole number from 1 to ${MAX_LIMIT} (pauseGroup stops a group)`);
  return checkInteger(path, value, { min: 1, max: MAX_LIMIT });
}

export function checkGroupRate(max: unknown, duration: unknown, path = ''): { max: number; durationMs: number } {
  const at = path === '' ? '' : `${path}.`;
  return {
    max: checkInteger(`${at}max`, max, { min: 1, max: MAX_LIMIT }),
    durationMs: checkInteger(`${at}duration`, duration, { min: 1, max: MAX_TIMER_MS }),
  };
}

/** Checks the option `group` of a worker. */
export function checkGroupLimits(value: unknown): void {
  if (!isRecord(value)) throw invalidOption('group', value, '{ concurrency, limit: { max, duration } }');
  WORKER_NAMES.check(value, 'group');
  const { concurrency, limit } = value;
  if (concurrency !== undefined) checkGroupConcurrency(concurrency, 'group.concurrency');
  if (limit === undefined) return;
  if (!isRecord(limit)) throw invalidOption('group.limit', limit, '{ max, duration }');
  LIMIT_NAMES.check(limit, 'group.limit');
  checkGroupRate(limit['max'], limit['duration'], 'group.limit');
}

/** Throws if a job would have a lock key and a group: each of them decides alone when the job may run. */
export function checkOneLine({ lockKey, group }: { lockKey?: string | undefined; group?: GroupOptions | undefined }): void {
  if (lockKey === undefined || group === undefined) return;
  throw invalidOption(
    'group',
    group,
    'left out with lockKey: a job has a lock key or a group, and a group with concurrency 1 does both',
  );
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
