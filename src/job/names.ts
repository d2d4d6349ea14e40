// Checks the names of queues and jobs. Names go into keys, file names, channels and logs, so they are kept plain.
import { HoldfastError } from '../errors.js';
import { invalidOption, show } from '../runtime/check.js';

const MAX_NAME = 200;
/** Long enough for the ids that the older `repeat` option makes. */
const MAX_SCHEDULER_ID = 500;
// Control characters and halves of surrogate pairs.
const UNPRINTABLE = /[\u0000-\u001f\u007f\ud800-\udfff]/u;

export function checkQueueName(name: unknown): string {
  const fault = faultOf(name) ?? ((name as string).includes(':') ? 'must not contain :' : undefined);
  if (fault !== undefined) throw new HoldfastError('INVALID_QUEUE_NAME', problem('Queue name', name, fault));
  return name as string;
}

/** BullMQ's default prefix. A queue with this prefix is stored under its name alone. */
export const DEFAULT_PREFIX = 'bull';

/** The names of a queue: for users, and in the store. */
export interface QueueNames {
  readonly name: string;
  readonly prefix: string;
  /** `prefix:name`, as BullMQ shows it. */
  readonly qualified: string;
  readonly stored: string;
}

/** `prefix` separates environments that share a store: queues with the same name and different prefixes have nothing in common. */
export function queueNames(name: unknown, prefix: unknown = DEFAULT_PREFIX): QueueNames {
  const checked = checkQueueName(name);
  if (typeof prefix !== 'string' || prefix.length > MAX_NAME || UNPRINTABLE.test(prefix)) {
    throw invalidOption('prefix', prefix, `a string of up to ${MAX_NAME} characters, without control characters`);
  }
  // The facades of other libraries give names that are written already: only what no such name holds is escaped.
  const stored = isPlain(prefix) ? checked.replace(/[{}]/g, encodeURIComponent) : storedName(checked, prefix);
  return { name: checked, prefix, qualified: `${prefix}:${checked}`, stored };
}

/**
 * Returns the stored name of a queue whose name and prefix may hold any characters. Characters that stores build keys with are escaped as
 * in a URL, so that two different names stay different. A store may put queues whose prefixes hold the same `{…}` side by side.
 */
export function storedName(name: string, prefix: string | undefined): string {
  // Invalid names pass: checkQueueName reports them.
  if (typeof name !== 'string' || name === '') return name;
  return isPlain(prefix) ? written(name) : `${written(prefix)}/${written(name)}`;
}

function isPlain(prefix: string | undefined): prefix is '' | undefined {
  return prefix === undefined || prefix === '' || prefix === DEFAULT_PREFIX;
}

function written(name: string): string {
  return name.replace(/[%:{}/]/g, (character) => encodeURIComponent(character));
}

function read(text: string): string {
  return text.replace(/%(?:25|3A|7B|7D|2F)/g, decodeURIComponent);
}

export function checkJobName(name: unknown): string {
  const fault = faultOf(name);
  if (fault !== undefined) throw new HoldfastError('INVALID_JOB_NAME', problem('Job name', name, fault));
  return name as string;
}

/** Stores count up bare integers as ids themselves. A job id given as a bare integer would make a later job its duplicate. */
export function checkJobId(id: unknown): string {
  const fault =
    faultOf(id) ??
    (/^\d+$/.test(id as string) ? 'is a bare integer, which is what the store counts with; put a letter before it' : undefined);
  if (fault !== undefined) throw new HoldfastError('INVALID_JOB_ID', problem('Job id', id, fault));
  return id as string;
}

/** Checks that the caller gave an id. The store checks whether such a job exists. */
export function checkGivenId(id: unknown): string {
  if (typeof id === 'string' && id !== '') return id;
  throw new HoldfastError('INVALID_JOB_ID', problem('Job id', id, faultOf(id) ?? 'must not be empty'));
}

function problem(what: string, given: unknown, fault: string): string {
  return typeof given === 'string' ? `${what} ${show(given)} ${fault}.` : `${what} ${fault}, but it is ${show(given)}.`;
}

function faultOf(name: unknown): string | undefined {
  if (typeof name !== 'string') return 'must be a string';
  if (name.length === 0) return 'must not be empty';
  if (name.length > MAX_NAME) return `is ${name.length} characters long, at most ${MAX_NAME} are allowed`;
  if (UNPRINTABLE.test(name)) return 'must not contain control characters or broken unicode';
  return undefined;
}

export function checkSchedulerId(id: unknown): string {
  const isPlainText = typeof id === 'string' && id !== '' && id.length <= MAX_SCHEDULER_ID && !UNPRINTABLE.test(id);
  if (isPlainText) return id;
  throw invalidOption('jobSchedulerId', id, `a string of 1 to ${MAX_SCHEDULER_ID} characters, without control characters`);
}

/** Returns the names of the queue that has this name in the store. */
export function queueNamesOf(stored: string): QueueNames {
  const cut = stored.indexOf('/');
  const prefix = cut === -1 ? DEFAULT_PREFIX : read(stored.slice(0, cut));
  const name = read(stored.slice(cut + 1));
  return { name, prefix, qualified: `${prefix}:${name}`, stored };
}

/** Reads a queue that a user names as `prefix:name`, or by its name alone, which then has the given prefix. */
export function parseQueueName(given: unknown, prefix: string): QueueNames {
  const cut = typeof given === 'string' ? given.lastIndexOf(':') : -1;
  return cut === -1 ? queueNames(given, prefix) : queueNames((given as string).slice(cut + 1), (given as string).slice(0, cut));
}

/** Returns `prefix:queue:id`, as BullMQ names a job of another queue. */
export function jobKey({ queue, id }: { queue: string; id: string }): string {
  return `${queueNamesOf(queue).qualified}:${id}`;
}
