// Errors on their way between a worker and its sandbox. They arrive with name, message, stack, code, cause and plain properties. Ours and
// those that say how a job goes on arrive as the same class.
import { type ErrorCode, type ErrorDetails, ERROR_CODES, HoldfastError, toError } from '../errors.js';
import { DelayedError, RateLimitError, UnrecoverableError, WaitingChildrenError, WaitingError } from '../job/signals.js';

export interface CrossingError {
  name: string;
  message: string;
  stack?: string;
  cause?: CrossingError;
  /** Own properties whose values are plain: code, retryable, jobId, statusCode … */
  fields?: Record<string, string | number | boolean>;
}

/** Causes may form a cycle. */
const MAX_CAUSES = 8;
const OWN = new Set(['name', 'message', 'stack', 'cause']);

/** Never throws. If a getter of the error throws, the worker still gets a report of the error. */
export function leaving(thrown: unknown, depth = 0): CrossingError {
  try {
    const error = toError(thrown);
    const left: CrossingError = { name: String(error.name), message: String(error.message) };
    if (typeof error.stack === 'string') left.stack = error.stack;
    if (error.cause !== undefined && error.cause !== null && depth < MAX_CAUSES) left.cause = leaving(error.cause, depth + 1);
    const fields = Object.entries(error).filter(([name, value]) => !OWN.has(name) && isPlain(value));
    if (fields.length > 0) left.fields = Object.fromEntries(fields) as Record<string, string | number | boolean>;
    return left;
  } catch {
    return { name: 'Error', message: 'an error was thrown that cannot be read' };
  }
}

function isPlain(value: unknown): boolean {
  return typeof value === 'string' || typeof value === 'boolean' || (typeof value === 'number' && Number.isFinite(value));
}

const SIGNALS = { UnrecoverableError, DelayedError, RateLimitError, WaitingChildrenError, WaitingError };

export function arrived(crossing: CrossingError): Error {
  const { name, stack, cause, fields = {} } = crossing;
  const error = make(crossing);
  if (error.name !== name) define(error, 'name', name);
  if (stack !== undefined) define(error, 'stack', stack);
  if (cause !== undefined) define(error, 'cause', arrived(cause));
  if (!(error instanceof HoldfastError)) {
    for (const [key, value] of Object.entries(fields)) if (key !== '__proto__' && !OWN.has(key)) define(error, key, value, true);
  }
  return error;
}

function make({ name, message, fields = {} }: CrossingError): Error {
  const { code } = fields;
  if (name === 'HoldfastError' && Object.hasOwn(ERROR_CODES, String(code)))
    return new HoldfastError(code as ErrorCode, message, fields as ErrorDetails);
  if (Object.hasOwn(SIGNALS, name)) return new SIGNALS[name as keyof typeof SIGNALS](message);
  return new Error(message);
}

/** As the constructor of Error does it: not enumerable, so that logs do not show it twice. */
function define(error: Error, key: string, value: unknown, enumerable = false): void {
  Object.defineProperty(error, key, { value, enumerable, writable: true, configurable: true });
}
