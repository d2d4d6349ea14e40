// Turns errors of the server and of the driver into HoldfastErrors. All calls of the store go through it.
import { asLate, type ErrorCode, HoldfastError, isError } from '../../../errors.js';
import { certificateAdvice } from '../../certificate.js';

/** SQLSTATEs that functions of the schema raise. */
export const RAISED = {
  /** A call that arrived after a later call of its caller. */
  straggler: 'HF001',
  /** A session id that was opened before. */
  sessionExists: 'HF002',
  /** The end of a rehearsal, which is rolled back. */
  rehearsed: 'HF003',
  /** A family that is not added. The message has the statuses of its jobs. */
  refusedFamily: 'HF004',
} as const;

/** A statement was cancelled, in most cases by a `statement_timeout` of the user. */
const CANCELED = '57014';

/** The situation in which an error occurred. */
export interface Circumstance {
  /** host:port/database. */
  place: string;
  schema: string;
  /** True if the server was reached before: then a host name that is not found now may be found later. */
  reached: boolean;
}

const NETWORK = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ETIMEDOUT',
  'EPIPE',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EAI_AGAIN',
  'ENETDOWN',
  'ECONNABORTED',
]);

/** Returns the SQLSTATE or, for network errors, the code of Node. */
export function codeOf(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | null | undefined)?.code;
  return typeof code === 'string' ? code : undefined;
}

/** True if the connection can no longer be used, or leads to a server that cannot serve. */
export function spoilsConnection(error: unknown): boolean {
  const code = codeOf(error);
  if (code === undefined || !/^[0-9A-Z]{5}$/.test(code)) return true;
  return /^(08|57P|25006|58|53[23])/.test(code);
}

/** True if the transaction did not happen, and a retry may succeed at once. */
export function isCollision(error: unknown): boolean {
  const code = codeOf(error);
  return code === '40P01' || code === '40001';
}

/**
 * True if a migration has just replaced the functions that the call used, or their plans. Nothing was carried out, and a retry finds the
 * new ones.
 */
export function isReplaced(error: unknown): boolean {
  const code = codeOf(error);
  return code === '42883' || code === '0A000' || (code === 'XX000' && reasonOf(error).startsWith('cache lookup failed'));
}

type Fail = (kind: ErrorCode, message: string, retryable?: boolean) => HoldfastError;

export function toStoreError(error: unknown, circumstance: Circumstance): HoldfastError {
  if (error instanceof HoldfastError) return error;
  const { place } = circumstance;
  const code = codeOf(error);
  const reason = reasonOf(error);
  const fail: Fail = (kind, message, retryable = false) =>
    new HoldfastError(kind, `${message} (${code === undefined ? '' : `${code}: `}${reason})`, {
      cause: error,
      retryable,
      store: 'postgres',
    });
  if (code === undefined) return fail('STORE_UNAVAILABLE', `The connection to PostgreSQL at ${place} failed`, true);
  if (code === RAISED.straggler || code === RAISED.sessionExists)
    return new HoldfastError('STORE_FAILED', reason, { cause: error, store: 'postgres' });
  const known = unreached(code, circumstance, fail) ?? refusal(code, circumstance, fail) ?? hindrance(code, circumstance, fail);
  if (known !== undefined) return known;
  if (code === CANCELED) return asLate(fail('STORE_UNAVAILABLE', `PostgreSQL at ${place} has cancelled the call`, true));
  if (/^(08|53|57|58)/.test(code)) return fail('STORE_UNAVAILABLE', `PostgreSQL at ${place} cannot serve at the moment`, true);
  return fail('STORE_FAILED', `PostgreSQL at ${place} reported an error`);
}

/** Returns the error for a server that was not reached, or not trusted. */
function unreached(code: string, { place, reached }: Circumstance, fail: Fail): HoldfastError | undefined {
  if (code === 'ENOTFOUND')
    return fail('STORE_UNAVAILABLE', `There is no host of the name of PostgreSQL at ${place}. Check the host name`, reached);
  const untrusted = certificateAdvice(code, 'ssl');
  if (untrusted !== undefined)
    return fail('STORE_UNTRUSTED', `The TLS certificate of PostgreSQL at ${place} cannot be verified: ${untrusted}`);
  if (!NETWORK.has(code)) return undefined;
  return fail(
    'STORE_UNAVAILABLE',
    `PostgreSQL at ${place} cannot be reached. Check that it runs and that host and port are right`,
    true,
  );
}

/** Returns the error for a user whom the server or the schema refuses. */
function refusal(code: string, { place, schema, reached }: Circumstance, fail: Fail): HoldfastError | undefined {
  switch (code) {
    case '28P01':
    case '28000':
      return fail(
        'STORE_DENIED',
        `PostgreSQL at ${place} refuses the user or the password. Check them, and pg_hba.conf of the server`,
      );
    case '3D000':
      return fail('STORE_DENIED', `PostgreSQL at ${place} has no such database. Create it, or name another one`);
    case '42501':
      return fail(
        'STORE_DENIED',
        `The database user lacks rights on the schema "${schema}" at ${place}. Let its owner type: ` +
          ['USAGE ON ', 'ALL ON ALL TABLES IN ', 'ALL ON ALL SEQUENCES IN ', 'ALL ON ALL FUNCTIONS IN ']
            .map((what) => `GRANT ${what}SCHEMA "${schema}" TO <user>;`)
            .join(' '),
      );
    case '25006':
      return fail(
        'STORE_READONLY',
        `PostgreSQL at ${place} takes no writes: it is a replica, or set to read only. Name the primary server`,
        reached,
      );
    default:
      return undefined;
  }
}

/** Returns the error for what keeps a call from its work: the schema is gone, the disk is full, or another transaction holds rows. */
function hindrance(code: string, { place, schema }: Circumstance, fail: Fail): HoldfastError | undefined {
  switch (code) {
    case '3F000':
    case '42P01':
    case '42883':
      return fail(
        'STORE_GONE',
        `The schema "${schema}" at ${place} is not there, or not whole: it was dropped or changed. Restore it, or open the store anew to create it`,
      );
    case '53100':
      return fail(
        'STORE_FULL',
        `PostgreSQL at ${place} has no room left on its disk: nothing of the call was written. Free some space`,
        true,
      );
    case '40001':
    case '40P01':
    case '55P03':
      return fail(
        'STORE_BUSY',
        `Another transaction holds rows of the schema "${schema}" at ${place} for too long. Look for it in pg_stat_activity`,
        true,
      );
    case '57P04':
      return fail('STORE_GONE', `The database at ${place} was dropped`);
    default:
      return undefined;
  }
}

/**
 * Turns an error inside a transaction of the user into a HoldfastError. After any error of the server, that transaction can only be
 * rolled back.
 */
export function toTransactionError(thrown: unknown, circumstance: Circumstance): HoldfastError {
  const error = innermost(thrown);
  const code = codeOf(error);
  const { place, schema } = circumstance;
  const fail = (kind: ErrorCode, message: string): HoldfastError =>
    new HoldfastError(kind, message, { cause: thrown, option: 'transaction', store: 'postgres' });
  switch (code) {
    case undefined:
      return fail('STORE_FAILED', `The transaction cannot be used: ${reasonOf(error)}. Roll it back, and repeat all of it`);
    case '3F000':
    case '42P01':
    case '42883':
      return fail(
        'INVALID_OPTION',
        `The connection of the transaction does not see the schema "${schema}" at ${place}: it leads to another database, or the schema was dropped. ` +
          `Begin the transaction on a connection to that database; this one can only be rolled back. (${code}: ${reasonOf(error)})`,
      );
    case '25P02':
      return fail('STORE_FAILED', 'The transaction was aborted by a statement that failed before: it can only be rolled back.');
    case '25006':
      return fail('STORE_READONLY', 'The transaction is read only. Begin it with READ WRITE, on the primary server.');
    default:
      break;
  }
  const known = toStoreError(error, circumstance);
  const { retryable, message } = known;
  const next = retryable ? 'Roll the transaction back, and repeat all of it.' : 'The transaction can only be rolled back.';
  return new HoldfastError(known.code, `${message} ${next}`, { cause: thrown, retryable, store: 'postgres' });
}

/** Unwraps the driver's error from those of query builders. */
function innermost(error: unknown): unknown {
  const { cause } = (error ?? {}) as { cause?: unknown };
  return codeOf(error) === undefined && isError(cause) ? innermost(cause) : error;
}

/** Returns the message. An AggregateError over the addresses of a host has no message of its own. */
function reasonOf(error: unknown): string {
  const inner = (error as { errors?: unknown } | null | undefined)?.errors;
  const message = isError(error) ? error.message : String(error);
  // Knex puts the statement with all its values before the message: values must not leak into errors.
  if (message.startsWith('SELECT "')) return message.slice(message.lastIndexOf(' - ') + 3);
  if (message !== '' || !Array.isArray(inner)) return message;
  return inner.map(reasonOf).join(', ');
}
