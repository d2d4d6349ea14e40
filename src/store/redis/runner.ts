// How a verb reaches its queue: every script gets the queue's hash tag as its only key and derives all others from it, so that all
// of a queue lies in one slot of a cluster.
import type { Argument } from './driver.js';
import type { Link } from './link.js';
import type { ScriptName } from './scripts.js';

export type Runner = (name: ScriptName, queue: string, args: Argument[]) => Promise<unknown>;

/** `{…}` in the prefix of a queue, as `storedName` of job/names.ts writes it. */
const SHARED_TAG = /^[^/]*?%7B([^/]+?)%7D[^/]*\//;

/** Queues whose prefixes hold the same `{…}` share a slot. Whatever the tag is, the name of the queue follows or is part of it. */
export function tagOf(prefix: string, queue: string): string {
  const shared = SHARED_TAG.exec(queue)?.[1];
  return shared === undefined ? `{${prefix}:${queue}}` : `{${prefix}:${shared}}/${queue}`;
}

export function runnerOn(link: Link, prefix: string): Runner {
  return (name, queue, args) => link.run(name, tagOf(prefix, queue), args);
}
