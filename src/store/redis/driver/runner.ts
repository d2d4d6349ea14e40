// Runs scripts for a queue. Every script gets the queue's hash tag as its only key and derives all other keys from it. So all keys of a
// queue lie in one slot of a cluster.
import type { Argument } from './driver.js';
import type { Link } from './link.js';
import type { ScriptName } from './scripts.js';

export type Runner = (name: ScriptName, queue: string, args: Argument[]) => Promise<unknown>;

/** `{…}` in the prefix of a queue, as `storedName` of job/names.ts writes it. */
const SHARED_TAG = /^[^/]*?%7B([^/]+?)%7D[^/]*\//;

/**
 * Returns the start of all keys of a queue, with its hash tag. Queues whose prefixes contain the same `{…}` share a slot. The name of the
 * queue is always part of the tag or follows it.
 */
export function tagOf(prefix: string, queue: string): string {
  const shared = SHARED_TAG.exec(queue)?.[1];
  return shared === undefined ? `{${prefix}:${queue}}` : `{${prefix}:${shared}}/${queue}`;
}

export function runnerOn(link: Link, prefix: string): Runner {
  return (name, queue, args) => link.run(name, tagOf(prefix, queue), args);
}
