// The largest value that the server takes. If a value is larger, Redis closes the connection, mostly before its reply can be read: the
// caller would see an outage and repeat the call for ever. So link.ts measures values before it sends them.
import type { HoldfastError } from '../../../errors.js';
import type { Argument, Client } from './driver.js';
import { failure } from './errors.js';

export interface ValueLimit {
  bytes: number;
  /** The setting of the server that this limit comes from. */
  setting: string;
  /** True if the Redis user may not read the setting: `bytes` is then the least value that the setting can have. */
  assumed?: true;
}

/** The default of Redis. */
export const DEFAULT_LIMIT: ValueLimit = { bytes: 512 * 1024 * 1024, setting: 'proto-max-bulk-len' };
const LEAST_LIMIT: ValueLimit = { ...DEFAULT_LIMIT, bytes: 1024 * 1024, assumed: true };
/** The query buffer also holds the bytes before and after a value. */
const BUFFER_SLACK = 64 * 1024;
/** The most bytes that one UTF-16 unit takes in UTF-8. */
const BYTES_PER_UNIT = 3;

export async function valueLimitOf(client: Client): Promise<ValueLimit> {
  const [bulk, buffer] = await Promise.all([
    settingOf(client, DEFAULT_LIMIT.setting),
    settingOf(client, 'client-query-buffer-limit'),
  ]);
  if (bulk === undefined) return LEAST_LIMIT;
  const limit = { ...DEFAULT_LIMIT, bytes: bulk };
  if (buffer === undefined || buffer - BUFFER_SLACK >= limit.bytes) return limit;
  return { bytes: buffer - BUFFER_SLACK, setting: 'client-query-buffer-limit' };
}

async function settingOf(client: Client, name: string): Promise<number | undefined> {
  const reply = await client.call('config', ['GET', name]).catch(() => undefined);
  const value = Array.isArray(reply) ? Number(reply[1]) : Number.NaN;
  return Number.isFinite(value) && value > 0 ? value : undefined;
}

/** Returns the size of the first value above the limit in bytes, undefined if all values fit. */
export function sizeAbove(args: Argument[], { bytes }: ValueLimit): number | undefined {
  const surelyFits = bytes / BYTES_PER_UNIT;
  for (const value of args) {
    if (typeof value !== 'string' || value.length <= surelyFits) continue;
    const size = Buffer.byteLength(value);
    if (size > bytes) return size;
  }
  return undefined;
}

export function tooLarge(size: number, { bytes, setting }: ValueLimit, address: string): HoldfastError {
  const message = `Redis at ${address} takes no value above ${bytes} bytes (${setting}), and this one has ${size}: nothing was written. Store it elsewhere and pass a reference, or raise the limit.`;
  return failure('PAYLOAD_TOO_LARGE', message);
}

/** Adds to an outage that Redis may have closed the connection because of the value: the reply that says so is mostly lost. */
export function perhapsTooLarge(error: HoldfastError, size: number, { setting }: ValueLimit): HoldfastError {
  if (error.code !== 'STORE_UNAVAILABLE') return error;
  const message = `${error.message} A value of ${size} bytes was on its way. If this happens again, Redis takes no value of this size (${setting}; its user has no right to CONFIG GET, which would tell): store it elsewhere and pass a reference, or raise the limit.`;
  return failure(error.code, message, { cause: error, retryable: error.retryable });
}
