// The Lua files: one per operation, each naming the parts of lua/shared that it uses in its first line. They are sent by their
// hash; a server that does not know it (restarted, flushed, a replica that took over) gets the text and knows it from then on.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { HoldfastError } from '../../errors.js';

export type ScriptName =
  | 'acquire'
  | 'add'
  | 'cap'
  | 'change'
  | 'claim'
  | 'clear'
  | 'close-session'
  | 'events'
  | 'extend'
  | 'jobs'
  | 'let-go'
  | 'limit'
  | 'list'
  | 'list-active'
  | 'lock-of'
  | 'logs'
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
  const operation = read(`${name}.lua`);
  const parts = /^-- use: (.+)$/m.exec(operation)?.[1]?.split(' ') ?? [];
  const text = [...parts.map((part) => read(`shared/${part}.lua`)), operation].join('\n');
  const made = { text, sha: createHash('sha1').update(text).digest('hex') };
  loaded.set(name, made);
  return made;
}

function read(file: string): string {
  try {
    return readFileSync(new URL(`lua/${file}`, import.meta.url), 'utf8');
  } catch (cause) {
    throw new HoldfastError(
      'DRIVER_MISSING',
      `The Redis store cannot read its script ${file}, which lies beside its code. If this program was bundled, leave holdfast out of the bundle (external).`,
      { cause, store: 'redis' },
    );
  }
}
