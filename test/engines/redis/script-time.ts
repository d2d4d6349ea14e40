// How much scripts cost Redis: the CPU that it uses for them, beside the CPU that it uses for a reference script meanwhile. A busy machine slows
// both alike.
import type { Redis } from 'ioredis';

/** Lua and commands on a small hash and a small sorted set, as in the scripts of the store. */
const REFERENCE = `
for n = 1, ARGV[1] do
  local field, text = 'field ' .. n % 50, string.rep('x', n % 30) .. n
  redis.call('HSET', KEYS[1], field, text)
  redis.call('ZADD', KEYS[2], n, field)
  if redis.call('HGET', KEYS[1], field) ~= text then return redis.error_reply('lost') end
end
redis.call('DEL', KEYS[1], KEYS[2])`;
/** With these, the reference script uses about 5 ms of CPU on a quiet machine. */
const REFERENCE_TURNS = 1_800;
const REFERENCE_MS = 5;
const PAUSE_MS = 50;
const ROUNDS = 7;

export interface ScriptCost {
  scripts: number;
  /** The mean of a script, in milliseconds of the CPU of a quiet machine. */
  ms: number;
}

/** Returns what the scripts of some work cost. Nothing else may use the server meanwhile. */
export async function scriptCost(client: Redis, work: () => Promise<unknown>): Promise<ScriptCost> {
  const references: number[] = [];
  const refer = async (): Promise<void> => void references.push(await referenceCpu(client));
  let ended = false;
  await client.config('RESETSTAT');
  const before = await cpuOf(client);
  const referring = (async () => {
    for (; !ended; await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))) await refer();
  })();
  try {
    await work();
  } finally {
    ended = true;
    await referring;
  }
  await refer();
  const all = (await cpuOf(client)) - before;
  const reference = references.reduce((sum, ms) => sum + ms, 0);
  const scripts = Number(/cmdstat_evalsha:calls=(\d+)/.exec(await client.info('commandstats'))?.[1]);
  const ms = ((all - reference) / scripts) * (REFERENCE_MS / (reference / references.length));
  return { scripts, ms };
}

/** Returns the mean of the scripts of some work that is done several times, each time after its preparation. */
export async function scriptTime(client: Redis, prepare: (round: number) => Promise<() => Promise<unknown>>): Promise<number> {
  const all = { scripts: 0, ms: 0 };
  for (let round = 0; round < ROUNDS; round += 1) {
    const { scripts, ms } = await scriptCost(client, await prepare(round));
    all.scripts += scripts;
    all.ms += scripts * ms;
  }
  return all.ms / all.scripts;
}

/** The CPU of the thread that runs scripts, on Linux: the other threads of Redis delete what it has unlinked. */
async function cpuOf(client: Redis): Promise<number> {
  return cpuIn(await client.info('cpu'));
}

function cpuIn(info: string): number {
  const of = info.includes('_main_thread:') ? '_main_thread' : '';
  const seconds = (kind: string): number => Number(new RegExp(`used_cpu_${kind}${of}:([\\d.]+)`).exec(info)?.[1]);
  return (seconds('user') + seconds('sys')) * 1000;
}

/** Runs the reference script. Redis runs nothing else between the commands of a transaction. */
async function referenceCpu(client: Redis): Promise<number> {
  const [before, , after] =
    (await client
      .multi()
      .info('cpu')
      .eval(REFERENCE, 2, 'reference:hash', 'reference:set', REFERENCE_TURNS)
      .info('cpu')
      .exec()) ?? [];
  return cpuIn(after?.[1] as string) - cpuIn(before?.[1] as string);
}
