// The clock of Redis stores under a test's hand: their scripts read it from a key instead of asking Redis for the time. The texts of the scripts
// are shared by all stores of a process, so this holds for all of them.
import { createHash } from 'node:crypto';
import type { Cluster, Redis } from 'ioredis';
import { type ScriptName, script, sections } from '../../../src/store/redis/driver/scripts.js';

const ASKED = "call('TIME')";

/** `read` is Lua that returns seconds and microseconds, as TIME does. */
export function readClockWith(read: string): void {
  for (const name of sections.operations.keys()) {
    const known = script(name as ScriptName);
    if (known.text.includes(read)) continue;
    const text = known.text.replace(ASKED, () => read);
    // The text that replaces it may ask Redis as well.
    if (known.text.replace(ASKED, '').includes("'TIME'"))
      throw new Error(`The script ${name} asks for the time in another way than by ${ASKED}.`);
    Object.assign(known, { text, sha: createHash('sha1').update(text).digest('hex') });
  }
}

/** The clock goes on by itself, and is ahead of Redis' own by the milliseconds that `shift` sets. */
export interface ShiftedClock {
  shift(ms: number): Promise<void>;
}

/** `name` begins the keys that hold the shift. */
export function shiftedClock(client: Redis | Cluster, name: string): ShiftedClock {
  // A script may read only keys of the node that it runs on. The slots of these hash tags lie on all three nodes of a cluster.
  const keys = ['0', '1', '3'].map((tag) => `${name}:{${tag}}`);
  readClockWith(`(function()
  local time, shift = call('TIME'), 0
  for _, name in ipairs({ ${keys.map((key) => `'${key}'`).join(', ')} }) do
    local found = redis.pcall('GET', name)
    if type(found) == 'string' then shift = tonumber(found) break end
  end
  local micros = time[1] * 1000000 + time[2] + shift * 1000
  return { math.floor(micros / 1000000), micros % 1000000 }
end)()`);
  return { shift: async (ms) => void (await Promise.all(keys.map((key) => client.set(key, ms)))) };
}
