// What may be called what. Names travel into keys, file names, channels and logs, so they are kept plain.
import { HoldfastError } from '../errors.js';
import { show } from '../runtime/check.js';

const MAX_NAME = 200;
// Control characters, halves of surrogate pairs and, for queues, what stores use to build keys.
const UNPRINTABLE = /[\u0000-\u001f\u007f\ud800-\udfff]/u;
const KEY_CHARACTERS = /[:{}]/;

export function checkQueueName(name: unknown): string {
  const fault = faultOf(name) ?? (KEY_CHARACTERS.test(name as string) ? 'must not contain : { or }' : undefined);
  if (fault !== undefined) throw new HoldfastError('INVALID_QUEUE_NAME', `Queue name ${show(name)} ${fault}.`);
  return name as string;
}

export function checkJobName(name: unknown): string {
  const fault = faultOf(name);
  if (fault !== undefined) throw new HoldfastError('INVALID_JOB_NAME', `Job name ${show(name)} ${fault}.`);
  return name as string;
}

/** Bare integers are the ids that stores count up themselves: a given one would swallow a later job as its duplicate. */
export function checkJobId(id: unknown): string {
  const fault =
    faultOf(id) ??
    (/^\d+$/.test(id as string) ? 'is a bare integer, which is what the store counts with; put a letter before it' : undefined);
  if (fault !== undefined) throw new HoldfastError('INVALID_JOB_ID', `Job id ${show(id)} ${fault}.`);
  return id as string;
}

function faultOf(name: unknown): string | undefined {
  if (typeof name !== 'string') return 'must be a string';
  if (name.length === 0) return 'must not be empty';
  if (name.length > MAX_NAME) return `is ${name.length} characters long, at most ${MAX_NAME} are allowed`;
  if (UNPRINTABLE.test(name)) return 'must not contain control characters or broken unicode';
  return undefined;
}
