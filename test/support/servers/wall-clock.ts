// A Node process whose wall clock is ahead or behind, while its monotonic clock is right, as on a host with a wrong time:
//   fork(program, args, await wallClockShiftedBy(300_000))
import { fileURLToPath } from 'node:url';
import { folderOf } from './programs.js';

const PRELOAD = fileURLToPath(new URL('shifted-date.mjs', import.meta.url));

export interface ShiftedClock {
  /** libfaketime shifts what the kernel says, for native code too; without it, the preload shifts Date alone. */
  by: 'faketime' | 'preload';
  env: NodeJS.ProcessEnv;
  execArgv: string[];
}

export async function wallClockShiftedBy(ms: number, by?: 'preload'): Promise<ShiftedClock> {
  const folder = by === 'preload' ? undefined : await folderOf('faketime').catch(() => undefined);
  if (folder === undefined) {
    return { by: 'preload', env: { ...process.env, SHIFTED_DATE_MS: `${ms}` }, execArgv: ['--import', PRELOAD] };
  }
  const faketime = {
    LD_PRELOAD: `${folder}/libfaketime.so.1`,
    FAKETIME: `${ms < 0 ? '-' : '+'}${Math.abs(ms) / 1000}`,
    FAKETIME_DONT_FAKE_MONOTONIC: '1',
  };
  return { by: 'faketime', env: { ...process.env, ...faketime }, execArgv: [] };
}
