// Short runs of the programs, so that they never rot. Long ones are for `npm run chaos` and `npm run soak`.
import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import { oneInThisRun } from '../support/run/matrix.js';
import { paced } from '../support/wait/pace.js';

const CHAOS = fileURLToPath(new URL('../../chaos/chaos.mjs', import.meta.url));
const SOAK = fileURLToPath(new URL('../../soak/soak.mjs', import.meta.url));

export interface ChaosRun {
  code: number | null;
  output: string;
}

export const chaos = (...flags: string[]): Promise<ChaosRun> => run(CHAOS, flags);
export const soak = (...flags: string[]): Promise<ChaosRun> => run(SOAK, flags);

async function run(program: string, flags: string[]): Promise<ChaosRun> {
  const child = spawn(process.execPath, [program, ...flags], { stdio: ['ignore', 'pipe', 'pipe'] });
  // Should the test give up: it ends its crew and its server itself.
  onTestFinished(() => void child.kill('SIGTERM'));
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  const [output, errors, code] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  return { code, output: `${output}${errors}` };
}

/** The gate takes one of the servers beside SQLite. */
export function inTurn(server: 'redis' | 'redis-cluster' | 'postgres'): boolean {
  return oneInThisRun(['redis', 'postgres', 'redis-cluster'], 'chaos').includes(server);
}

/** About a dozen faults within 10 s, and fewer on a busy machine: tests ask for some. The calm that follows lasts as long as this machine needs for it. */
export const SHORT = ['--minutes', String(10_000 / 60_000), '--pace-ms', '600'];
/** Mostly for starting and ending 12 processes on a busy machine. */
export const LIMIT = { timeout: paced(120_000) };
