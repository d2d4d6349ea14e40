// How large a value the server takes. A larger one makes Redis close the connection, mostly before its reply can be read: the caller would
// see an outage and repeat the call for ever. So values are measured before they are sent.
import type { HoldfastError } from '../../errors.js';
import type { Argument, Client } from './driver.js';
import { failure } from './errors.js';

export interface ValueLimit {
  bytes: number;
  /** The setting of the server that it comes from. */
  setting: string;
  /** The user may not ask for the setting: this is the least that it can be. */
  assumed?: true;
}

/** What Redis has unless it was set otherwise. */
export const DEFAULT_LIMIT: ValueLimit = { bytes: 512 * 1024 * 1024, setting: 'proto-max-bulk-len' };
const LEAST_LIMIT: ValueLimit = { ...DEFAULT_LIMIT, bytes: 1024 * 1024, assumed: true };
/** The buffer also holds what stands before and behind a value. */
const BUFFER_SLACK = 64 * 1024;
/** The most bytes that one UTF-16 unit takes. */
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

/** The size of the first value above the limit, if there is one. */
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

/** Redis may have closed the connection because of the value: its reply is mostly lost then. */
export function perhapsTooLarge(error: HoldfastError, size: number, { setting }: ValueLimit): HoldfastError {
  if (error.code !== 'STORE_UNAVAILABLE') return error;
  const message = `${error.message} A value of ${size} bytes was on its way. If this happens again, Redis takes no value of this size (${setting}; its user has no right to CONFIG GET, which would tell): store it elsewhere and pass a reference, or raise the limit.`;
  return failure(error.code, message, { cause: error, retryable: error.retryable });
}
