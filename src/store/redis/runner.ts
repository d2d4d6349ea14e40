// How a verb reaches its queue: every script gets the queue's hash tag as its only key and derives all others from it, so that all of a
// queue lies in one slot of a cluster.
import { HoldfastError } from '../../errors.js';
import type { Argument } from './driver.js';
import { scriptVerdict } from './errors.js';
import type { Link } from './link.js';
import type { ScriptName } from './scripts.js';

export type Runner = (name: ScriptName, queue: string, args: Argument[]) => Promise<unknown>;

export function tagOf(prefix: string, queue: string): string {
  return `{${prefix}:${queue}}`;
}

export function runnerOn(link: Link, prefix: string): Runner {
  return async (name, queue, args) => {
    try {
      return await link.run(name, tagOf(prefix, queue), args);
    } catch (error) {
      throw refusal(error, queue, args) ?? error;
    }
  };
}

/** What a script refused on purpose. */
function refusal(error: unknown, queue: string, args: Argument[]): HoldfastError | undefined {
  const verdict = scriptVerdict(error);
  if (verdict === undefined) return undefined;
  const message =
    verdict.word === 'OPENED'
      ? `Session ${args[0]} was opened before: give every session an id of its own.`
      : `Call ${args[1]} of ${args[0]} came after its call ${verdict.detail}: number calls upwards.`;
  return new HoldfastError('STORE_FAILED', message, { cause: error, queue, store: 'redis' });
}
