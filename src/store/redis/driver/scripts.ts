// Loads the Lua scripts. Each is a section of a file of lua/ (see ../../sections.ts), whose first line (`-- use:`) names the parts that it
// needs. `npm run script -- redis settle` prints what the server gets. Scripts are sent by their hash. A server that does not know the hash
// (restarted, flushed, a replica that took over) gets the text once.
import { createHash } from 'node:crypto';
import { operationText, partText, sectionsOf } from '../../sections.js';
import { expand } from './lua-lists.js';
import { texts } from './lua-texts.js';

export type ScriptName =
  | 'acquire'
  | 'add'
  | 'add-family'
  | 'cancel'
  | 'change'
  | 'check-sessions'
  | 'children'
  | 'clear'
  | 'close-session'
  | 'configure'
  | 'deliver'
  | 'events'
  | 'extend'
  | 'forget'
  | 'forget-caller'
  | 'forget-entries'
  | 'forget-groups'
  | 'groups'
  | 'job-locks'
  | 'jobs'
  | 'kin'
  | 'kinship'
  | 'let-go'
  | 'list'
  | 'list-active'
  | 'logs'
  | 'losses'
  | 'minutes'
  | 'named-locks'
  | 'open-session'
  | 'outgoing'
  | 'overdue'
  | 'owned'
  | 'present'
  | 'probe'
  | 'remind'
  | 'remove'
  | 'renew'
  | 'requeue'
  | 'revoke'
  | 'schedule'
  | 'schedules'
  | 'send'
  | 'sessions'
  | 'settle'
  | 'status'
  | 'steps'
  | 'suspect'
  | 'sweep'
  | 'unlink'
  | 'watch'
  | 'write'
  | 'write-steps';

export interface Script {
  readonly text: string;
  readonly sha: string;
}

export const sections = sectionsOf(texts);
const loaded = new Map<ScriptName, Script>();

export function script(name: ScriptName): Script {
  return loaded.get(name) ?? load(name);
}

function load(name: ScriptName): Script {
  const operation = expand(operationText(name, sections));
  const parts = /^-- use: (.+)$/m.exec(operation)?.[1]?.split(' ') ?? [];
  const shared = parts.map(scriptPart);
  const text = nested(shared, Math.max(2, parts.indexOf('queue') + 1), operation);
  const made = { text, sha: createHash('sha1').update(text).digest('hex') };
  loaded.set(name, made);
  return made;
}

/** Returns the text of a part that scripts share. */
export function scriptPart(part: string): string {
  return expand(partText(part, sections));
}

/** Scripts that a full Redis may refuse: they store jobs and texts of users. All others take little memory, and finishing frees some. */
export const GROWING: ReadonlySet<ScriptName> = new Set<ScriptName>(['add', 'add-family', 'schedule', 'write', 'write-steps']);

/**
 * Returns the text of a script for a Redis that has reached its maxmemory. Redis refuses the first command of a script that takes memory,
 * unless the script has written before: stopping then would leave the script carried out in part. So this text begins with a write that
 * takes no memory.
 */
export function forced(name: ScriptName): string {
  return `redis.call('UNLINK', KEYS[1] .. ':forced')\n${script(name).text}`;
}

/**
 * Joins the parts of a script, and puts those after clock and tools (with `queue`: after the queue) into an inner function. Redis makes a
 * script's functions anew in every run. For each outer variable of each of them, Lua searches all shared variables of the enclosing
 * function, but none of those further out: 16 µs instead of 22 before a settle does anything. Deeper nesting, or a cut elsewhere, gained
 * nothing more.
 */
function nested(parts: string[], outer: number, operation: string): string {
  return [...parts.slice(0, outer), 'return (function()', ...parts.slice(outer), operation, 'end)()'].join('\n');
}
