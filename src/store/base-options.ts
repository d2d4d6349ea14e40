// The options that queues, workers and listeners share, with BullMQ's names.
import type { Connection } from './connection.js';

export interface QueueBaseOptions {
  connection?: Connection;
  /** Keeps queues of one name apart, for environments that share a store; 'bull' unless said otherwise. */
  prefix?: string;
  /** BullMQ's. Accepted, and without meaning here, as the two below. */
  skipVersionCheck?: boolean;
  skipWaitingForReady?: boolean;
  blockingConnection?: boolean;
}

export const BASE_NAMES: { readonly [K in keyof Required<QueueBaseOptions>]: true } = {
  connection: true,
  prefix: true,
  skipVersionCheck: true,
  skipWaitingForReady: true,
  blockingConnection: true,
};
