// Scripts with a fast path for most of their calls (the parts `plain-…` of lua/). With and without it, a script must leave the same data and
// return the same reply. The fast path must change nothing where it does not apply.
import type { Redis } from 'ioredis';
import { expect } from 'vitest';
import type { Argument } from '../../../src/store/redis/driver/driver.js';
import { type ScriptName, script, scriptPart } from '../../../src/store/redis/driver/scripts.js';

export const TAG = '{holdfast:q}';
/** Where the slow path is gone, on the same data. */
const COPY = '{holdfast:copy}';
const LEFT_ALONE = 'left alone';
/** The parts of a fast path, in their order. */
const SHORT_WAYS = {
  'plain-add': ['plain-add', 'plain-save'],
  'plain-deliver': ['plain-deliver', 'plain-save'],
  'plain-settle': ['plain-settle', 'plain-save'],
};

/** Both ways at one moment of Redis' clock; the long one on a copy. Answers which one the call takes. */
export async function goBothWays(
  client: Redis,
  name: ScriptName,
  part: keyof typeof SHORT_WAYS,
  args: Argument[],
): Promise<'short' | 'long'> {
  for (const key of await client.keys(`${COPY}:*`)) await client.del(key);
  for (const key of await client.keys(`${TAG}:*`)) await client.copy(key, COPY + key.slice(TAG.length));
  const before = await dataOf(client, TAG);
  const [seconds, micros] = await client.time();
  const text = script(name).text.replace("call('TIME')", `{ ${seconds}, ${micros} }`);
  const short = SHORT_WAYS[part].map(scriptPart).join('\n');
  const [head = '', tail] = text.split(short);
  expect(tail).toBeDefined();
  const reply = await client.eval(`${head}${short}\nreturn '${LEFT_ALONE}'`, 1, TAG, ...args);
  if (reply === LEFT_ALONE) {
    expect(await dataOf(client, TAG)).toEqual(before);
    return 'long';
  }
  const onCopy = args.map((arg) => (arg === TAG ? COPY : arg));
  // `deliver` in lua/families.lua goes on where its fast path has stopped.
  const without = part === 'plain-deliver' ? 'local plainTaken = 0' : '';
  const long = await client.eval(text.replace(short, without), 1, COPY, ...onCopy);
  expect(reply).toEqual(part === 'plain-deliver' ? (long as unknown[]).slice(0, 2) : long);
  const after = await dataOf(client, TAG);
  expect(after).toEqual(await dataOf(client, COPY));
  expect(after).not.toEqual(before);
  return 'short';
}

function countersOf(packed: Buffer | null): number[] {
  return Array.from({ length: (packed?.length ?? 0) / 8 }, (_, n) => packed?.readDoubleLE(8 * n) ?? 0);
}

/** Everything under a tag, by the rest of the key. */
async function dataOf(client: Redis, tag: string): Promise<Record<string, unknown>> {
  const data: Record<string, unknown> = {};
  for (const key of await client.keys(`${tag}:*`)) {
    const read: Record<string, () => Promise<unknown>> = {
      string: async () => (key.endsWith(':meta') ? countersOf(await client.getBuffer(key)) : client.get(key)),
      hash: () => client.hgetall(key),
      zset: () => client.zrange(key, 0, '-1', 'WITHSCORES'),
      set: async () => (await client.smembers(key)).sort(),
      stream: () => client.xrange(key, '-', '+'),
    };
    data[key.slice(tag.length)] = await read[await client.type(key)]?.();
  }
  return data;
}
