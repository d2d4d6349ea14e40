// Which stores a run tests. `npm run test:all`, and `npm test` with the names of files, test every store. The gate (`npm test` alone) tests memory
// and, in files whose tests mostly wait for processes and locks, one more: SQLite in half of them, in the others one of the stores behind a server.
// The name of the file chooses it, so that files share the stores evenly, and the gate tests the same today and tomorrow.
import { expect } from 'vitest';

/** Set by scripts/test.mjs. */
const IN_GATE = Boolean(process.env['HOLDFAST_GATE']);

/** True in a run of everything, and where a file was selected by name. */
export const FULL = !IN_GATE;

const WITHOUT_SERVER = ['memory', 'sqlite'];

/** Those of the engines that this run tests in the file that asks. Files with one `name` get the same ones. */
export function inThisRun<E extends string>(engines: readonly E[], name = expect.getState().testPath ?? ''): E[] {
  return FULL ? [...engines] : inGate(engines, name);
}

/** Memory, and one of the others. */
export function inGate<E extends string>(engines: readonly E[], name: string): E[] {
  const servers = engines.filter((engine) => !WITHOUT_SERVER.includes(engine));
  const takesServer = servers.length > 0 && (numberOf(name) % 2 === 0 || !engines.some((engine) => engine === 'sqlite'));
  const chosen = takesServer ? servers[(numberOf(name) >> 1) % servers.length] : 'sqlite';
  return engines.filter((engine) => engine === chosen || engine === 'memory');
}

/** One of the engines, or of other things, in the gate; all of them in a run of everything. For tests of tools, not of promises. */
export function oneInThisRun<E>(things: readonly E[], name = expect.getState().testPath ?? ''): E[] {
  return FULL ? [...things] : things.filter((_, index) => index === numberOf(name) % things.length);
}

/** A number that the path of a test file has on every machine. */
export function numberOf(path: string): number {
  const name = path.slice(path.lastIndexOf('/') + 1);
  let sum = 0;
  for (const letter of name) sum = (sum * 31 + letter.charCodeAt(0)) % 1_000_003;
  return sum;
}
