// The options that queues, workers and listeners share, with BullMQ's names.
import type { Telemetry } from '../runtime/telemetry.js';
import type { Connection } from './connection.js';

export interface QueueBaseOptions {
  /** The store. Default: HOLDFAST_URL, else the file holdfast.db in the working directory. */
  connection?: Connection;
  /** Separates queues with the same name, for environments that share a store. Default 'bull'. */
  prefix?: string;
  /** Option of BullMQ. Accepted without effect, like the two below. */
  skipVersionCheck?: boolean;
  skipWaitingForReady?: boolean;
  blockingConnection?: boolean;
  /** Makes spans of adds and runs, and carries their context with the jobs: an object of BullMQ's shape. Listeners make no spans. */
  telemetry?: Telemetry;
}

/** Options of BullMQ without an effect that queues, workers and listeners share, each with what there is instead. */
export const BASE_IGNORED = {
  streams: 'About 10,000 events of a queue are kept; queue.trimEvents(n) keeps fewer.',
};

export const BASE_NAMES: { readonly [K in keyof Required<QueueBaseOptions>]: true } = {
  connection: true,
  prefix: true,
  skipVersionCheck: true,
  skipWaitingForReady: true,
  blockingConnection: true,
  telemetry: true,
};
