// How a verb reaches its queue: every script gets the queue's hash tag as its only key and derives all others from it, so that all
// of a queue lies in one slot of a cluster.
import type { Argument } from './driver.js';
import type { Link } from './link.js';
import type { ScriptName } from './scripts.js';

export type Runner = (name: ScriptName, queue: string, args: Argument[]) => Promise<unknown>;

export function tagOf(prefix: string, queue: string): string {
  return `{${prefix}:${queue}}`;
}

export function runnerOn(link: Link, prefix: string): Runner {
  return (name, queue, args) => link.run(name, tagOf(prefix, queue), args);
}
