// The fields that a handle shows as its own, so that `{ ...job }` and Object.keys see them. The record is authoritative: a snapshot
// refreshes the fields after each change. Payloads are JSON text in the record. Usual ones ('{}', null, none) are shown at once. Others
// become own accessors that decode on first use: JSON.parse of 100 bytes takes 1 µs, a whole job on the memory store 3 µs, such an
// accessor 0.1 µs.
import { type LostBy, readLostBy } from '../job/lost-by.js';
import type { JobsOptions } from '../job/options.js';
import { decode } from '../job/payload.js';
import type { JobRecord } from '../job/record.js';
import type { JobProgress } from './job-context.js';

/** The fields of a handle that change after the handle was made. */
export interface JobFields {
  data: unknown;
  opts: JobsOptions;
  progress: JobProgress;
  returnvalue: unknown;
  failedReason: string;
  stacktrace: string[];
  delay: number;
  priority: number;
  timestamp: number;
  processedOn: number | undefined;
  finishedOn: number | undefined;
  processedBy: string | undefined;
  attemptsMade: number;
  attemptsStarted: number;
  stalledCounter: number;
  lostBy: LostBy | undefined;
  token: string | undefined;
}

export const PAYLOADS = ['data', 'opts', 'progress', 'returnvalue', 'stacktrace'] as const;
export type Payload = (typeof PAYLOADS)[number];

/** Marks a text that has not been decoded: the field becomes an accessor. */
export const ENCODED = Symbol('encoded');
type Encoded = typeof ENCODED;

/** In characters. Decoding a text of this length takes as long as turning a field of a handle into an accessor afterwards. */
export const DECODED_AT_ONCE = 1024;

/** Returns the value of a usual payload, or of a text with at most `atOnce` characters. A text that is not JSON stays ENCODED. */
export const shown = {
  data: (text: string, atOnce: number): unknown => (text === '{}' ? {} : decoded(text, atOnce)),
  opts: (text: string, atOnce: number): JobsOptions | Encoded => {
    if (text === '{}') return { attempts: 0 };
    const opts = decoded(text, atOnce) as JobsOptions | Encoded;
    return opts === ENCODED ? opts : withAttempts(opts);
  },
  progress: (text: string | undefined, atOnce: number): JobProgress | Encoded =>
    text === undefined ? 0 : (decoded(text, atOnce) as JobProgress | Encoded),
  returnvalue: (text: string | undefined, atOnce: number): unknown =>
    text === undefined || text === 'null' ? null : decoded(text, atOnce),
  stacktrace: (text: string | undefined, atOnce: number): string[] | Encoded =>
    text === undefined ? [] : (decoded(text, atOnce) as string[] | Encoded),
};

function decoded(text: string, atOnce: number): unknown {
  if (text.length > atOnce) return ENCODED;
  try {
    return decode(text);
  } catch {
    return ENCODED;
  }
}

function withAttempts(opts: JobsOptions): JobsOptions {
  return { attempts: 0, ...opts };
}

export interface PayloadReader {
  read(payload: Payload): unknown;
  set(payload: Payload, value: unknown): void;
}

/** Describes an own field whose value is decoded when it is read for the first time. */
export function decodedOnUse<J extends object>(payload: Payload, readerOf: (job: J) => PayloadReader): PropertyDescriptor {
  return {
    get(this: J) {
      return readerOf(this).read(payload);
    },
    set(this: J, value: unknown) {
      readerOf(this).set(payload, value);
    },
    enumerable: true,
    configurable: true,
  };
}

/** Throws INVALID_PAYLOAD if the text is not JSON: something other than Holdfast wrote it. */
export function decodePayload(payload: Payload, record: JobRecord): unknown {
  const value = decode(record[payload] as string);
  return payload === 'opts' ? withAttempts(value as JobsOptions) : value;
}

/** Sets the fields that need no decoding. */
export function showPlain(job: JobFields, record: JobRecord): void {
  job.failedReason = record.failedReason as string;
  job.delay = record.delay;
  job.priority = record.priority;
  job.timestamp = record.timestamp;
  job.processedOn = record.processedOn;
  job.finishedOn = record.finishedOn;
  job.processedBy = record.processedBy;
  job.attemptsMade = record.attemptsMade;
  job.attemptsStarted = record.attemptsStarted;
  job.stalledCounter = record.stalledCounter;
  job.lostBy = readLostBy(record.lostBy);
}
