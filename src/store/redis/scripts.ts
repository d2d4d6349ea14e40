// The Lua files: one per operation, each naming the parts of lua/shared that it uses in its first line. They are sent by their
// hash; a server that does not know it (restarted, flushed, a replica that took over) gets the text and knows it from then on.
import { createHash } from 'node:crypto';
import { luaText } from './lua-texts.js';

export type ScriptName =
  | 'acquire'
  | 'add'
  | 'cap'
  | 'change'
  | 'clear'
  | 'close-session'
  | 'events'
  | 'extend'
  | 'forget-caller'
  | 'jobs'
  | 'let-go'
  | 'limit'
  | 'list'
  | 'list-active'
  | 'lock-of'
  | 'logs'
  | 'losses'
  | 'named-locks'
  | 'open-session'
  | 'owned'
  | 'pause'
  | 'present'
  | 'probe'
  | 'remove'
  | 'renew'
  | 'requeue'
  | 'revoke'
  | 'sessions'
  | 'settle'
  | 'status'
  | 'suspect'
  | 'sweep'
  | 'trim-events'
  | 'unsuspected'
  | 'watch'
  | 'write';

export interface Script {
  readonly text: string;
  readonly sha: string;
}

const loaded = new Map<ScriptName, Script>();

export function script(name: ScriptName): Script {
  return loaded.get(name) ?? load(name);
}

function load(name: ScriptName): Script {
  const operation = luaText(`${name}.lua`);
  const parts = /^-- use: (.+)$/m.exec(operation)?.[1]?.split(' ') ?? [];
  const texts = parts.map((part) => luaText(`shared/${part}.lua`));
  const text = nested(texts, Math.max(1, parts.indexOf('queue') + 1), operation);
  const made = { text, sha: createHash('sha1').update(text).digest('hex') };
  loaded.set(name, made);
  return made;
}

/** What a full Redis refuses: jobs, and what is written to them. The others take little memory, and finishing makes room. */
export const GROWING: ReadonlySet<ScriptName> = new Set<ScriptName>(['add', 'write']);

/**
 * The script for a Redis that has reached its maxmemory. Redis stops a script at its first command that takes memory, but not one that has
 * changed something before: then it could be carried out in part. So this one begins with a change that takes none.
 */
export function forced(name: ScriptName): string {
  return `redis.call('UNLINK', KEYS[1] .. ':forced')\n${script(name).text}`;
}

/**
 * What follows the clock and, where it is used, the queue is a function of its own. Redis makes a script's functions anew
 * in every run, and for each outer variable of each of them Lua searches all shared variables of the function around it, but none of
 * those further out: 16 µs instead of 22 before a settle does anything. Deeper nesting, or a cut elsewhere, gained nothing more.
 */
function nested(parts: string[], outer: number, operation: string): string {
  return [...parts.slice(0, outer), 'return (function()', ...parts.slice(outer), operation, 'end)()'].join('\n');
}
