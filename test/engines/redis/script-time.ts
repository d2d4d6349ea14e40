// How long scripts take Redis, as Redis itself measures it.
import type { Redis } from 'ioredis';

/** Settings of a server that logs its scripts, but not the short commands that they call: writing these down would be most of the work. */
export const LOGS_SCRIPTS = { 'slowlog-log-slower-than': '100', 'slowlog-max-len': '1000' };
const ROUNDS = 7;

/**
 * Returns how long the scripts of some work take, in ms; 0 if none was logged. All scripts of the work must do alike, because the middle one
 * counts, in the quickest of several rounds: the machine may hold up any script.
 */
export async function scriptTime(client: Redis, prepare: (round: number) => Promise<() => Promise<unknown>>): Promise<number> {
  const rounds: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const work = await prepare(round);
    await client.slowlog('RESET');
    await work();
    const entries = (await client.slowlog('GET', -1)) as [number, number, number, string[]][];
    const scripts = entries.filter(([, , , [command = '']]) => command.toLowerCase().startsWith('eval'));
    const ms = scripts.map(([, , micros]) => micros / 1000).sort((a, b) => a - b);
    rounds.push(ms[Math.floor(ms.length / 2)] ?? 0);
  }
  return Math.min(...rounds);
}
