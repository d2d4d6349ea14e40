// Converts errors of Redis and of ioredis to HoldfastError. No other file of the engine interprets them.
import { asLate, type ErrorCode, HoldfastError, isError } from '../../../errors.js';
import { certificateAdvice } from '../../certificate.js';

interface Kind {
  pattern: RegExp;
  code: ErrorCode;
  retryable: boolean;
  advice: string;
}

// Matches the word at the start of a Redis error. For errors within a script, older versions put the word behind a dash.
const word = (words: string): RegExp => new RegExp(`(?:^|[ -])(?:${words})(?: |$)`);

const OOM = word('OOM');

const KINDS: readonly Kind[] = [
  {
    pattern: word('WRONGPASS|NOAUTH|AUTH'),
    code: 'STORE_DENIED',
    retryable: false,
    advice: 'Redis refuses the user name or password. Check them in the URL or in username and password',
  },
  {
    // The second text is the error within a script.
    pattern: /(?:^|[ -])NOPERM |The user executing the script can't/,
    code: 'STORE_DENIED',
    retryable: false,
    advice:
      'The Redis user lacks a right. Give it the keys of the prefix and the commands that the error names (ACL SETUSER … ~{prefix:* &{prefix:* +@all)',
  },
  {
    pattern: /DB index is out of range|invalid DB index|SELECT is not allowed in cluster mode/,
    code: 'STORE_DENIED',
    retryable: false,
    advice: 'Redis has no such database. Check the number behind the host in the URL, or db',
  },
  {
    pattern: /\b(?:ENOTFOUND|EAI_NONAME|EAI_NODATA)\b/,
    code: 'STORE_UNAVAILABLE',
    retryable: false,
    advice: 'The host of Redis is not known. Check its name',
  },
  {
    pattern: /unknown command/i,
    code: 'STORE_UNSUPPORTED',
    retryable: false,
    advice: 'This Redis lacks a command that Holdfast needs. Use Redis 6.2 or newer, or Valkey, with scripts and streams allowed',
  },
  {
    pattern: word('READONLY'),
    code: 'STORE_READONLY',
    retryable: true,
    advice: 'This Redis is a replica or has become one. The connection is made anew to find the primary',
  },
  {
    pattern: OOM,
    code: 'STORE_FULL',
    retryable: true,
    advice: 'Redis has reached its maxmemory: nothing of the call was written. Raise maxmemory, or remove finished jobs',
  },
  {
    // Redis sends this if the store could not read the limit and so could not check the size before.
    pattern: /invalid bulk length/,
    code: 'PAYLOAD_TOO_LARGE',
    retryable: false,
    advice: 'Redis takes no value of this size (proto-max-bulk-len). Store it elsewhere and pass a reference, or raise the limit',
  },
  {
    pattern: word('MISCONF'),
    code: 'STORE_FULL',
    retryable: true,
    advice: 'Redis cannot save to its disk and takes no writes. Look at its log',
  },
  {
    pattern: word('LOADING|BUSY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|NOREPLICAS|MOVED|ASK|UNBLOCKED'),
    code: 'STORE_UNAVAILABLE',
    retryable: true,
    advice: 'Redis is not ready to answer at the moment',
  },
  {
    pattern:
      /Connection is closed|Command timed out|max number of clients reached|Stream isn't writeable|Socket timeout|Reached the max retries|Command aborted|None of startup nodes|Failed to refresh slots|Cluster is|Cluster isn't|Too many Cluster redirections|All sentinels are unreachable|\bE(?:CONN\w+|PIPE|TIMEDOUT|HOSTUNREACH|HOSTDOWN|NETUNREACH|NETDOWN|ADDRNOTAVAIL|AI_AGAIN|NOENT|ACCES)\b/,
    code: 'STORE_UNAVAILABLE',
    retryable: true,
    advice: 'Redis cannot be reached, or the connection broke before it answered',
  },
];

/** Prefix of the error in `counters` in lua/queues.lua. */
const NEWER = 'HOLDFAST NEWER ';
const NEWER_ADVICE = 'Nothing was read or written. Update Holdfast in this process, or use another prefix.';

export function toStoreError(thrown: unknown, address: string): HoldfastError {
  if (thrown instanceof HoldfastError) return thrown;
  forgetCommand(thrown);
  const reason = reasonOf(thrown);
  // Errors that Holdfast's own scripts return on purpose.
  if (reason.startsWith(NEWER)) return failure('STORE_NEWER', `${reason.slice(NEWER.length)} ${NEWER_ADVICE}`, { cause: thrown });
  if (reason.startsWith('HOLDFAST ')) return failure('STORE_FAILED', reason.slice('HOLDFAST '.length), { cause: thrown });
  const untrusted = certificateAdvice(codeOf(thrown), 'tls');
  if (untrusted !== undefined) {
    const message = `The TLS certificate of Redis at ${address} cannot be verified: ${untrusted} (${reason}).`;
    return failure('STORE_UNTRUSTED', message, { cause: thrown });
  }
  const kind = KINDS.find(({ pattern }) => pattern.test(reason));
  if (kind === undefined) return failure('STORE_FAILED', `Redis at ${address} reported an error (${reason}).`, { cause: thrown });
  const error = failure(kind.code, `${kind.advice} (${address}: ${reason}).`, { cause: thrown, retryable: kind.retryable });
  return /Command timed out|Socket timeout/.test(reason) ? asLate(error) : error;
}

/** Removes the command that ioredis attaches to an error: it contains payloads of users or the password, which belong in no log. */
export function forgetCommand(thrown: unknown): void {
  if (!isError(thrown)) return;
  const error = thrown as Error & { command?: unknown; lastNodeError?: unknown };
  delete error.command;
  forgetCommand(error.lastNodeError);
}

export function unavailable(message: string, cause?: unknown): HoldfastError {
  return failure('STORE_UNAVAILABLE', message, { cause, retryable: true });
}

export function failure(code: ErrorCode, message: string, details: { cause?: unknown; retryable?: boolean } = {}): HoldfastError {
  return new HoldfastError(code, message, { ...details, store: 'redis' });
}

/** Returns whether the server sent this error as a reply. */
export function isReply(thrown: unknown): boolean {
  return isError(thrown) && thrown.name === 'ReplyError';
}

export function isUnknownScript(thrown: unknown): boolean {
  return isError(thrown) && thrown.message.startsWith('NOSCRIPT');
}

/** Returns whether Redis is full. It then refuses the first command of a script that takes memory, so nothing was carried out. */
export function isOutOfMemory(thrown: unknown): boolean {
  return isReply(thrown) && OOM.test((thrown as Error).message);
}

export function isReadOnly(error: unknown): boolean {
  return error instanceof HoldfastError && error.code === 'STORE_READONLY';
}

/** Returns Node's error code. */
function codeOf(thrown: unknown): string | undefined {
  if (!isError(thrown)) return undefined;
  const { code, lastNodeError } = thrown as { code?: unknown; lastNodeError?: unknown };
  return typeof code === 'string' ? code : codeOf(lastNodeError);
}

/** Returns the message. The error of a cluster wraps the error of the last node, so both messages are joined. */
function reasonOf(thrown: unknown): string {
  if (!isError(thrown)) return String(thrown);
  const inner = (thrown as { lastNodeError?: unknown }).lastNodeError;
  const message = thrown.message === '' ? ((thrown as { code?: string }).code ?? thrown.name) : thrown.message;
  return isError(inner) ? `${message}: ${inner.message}` : message;
}
