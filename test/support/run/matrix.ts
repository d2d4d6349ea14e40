// Which stores a run tests. `npm run test:all`, and `npm test` with the names of files, test every store. The gate (`npm test` alone) tests memory and
// SQLite and, in files whose tests mostly wait for processes and locks, one of the stores behind a server. Which one depends on the file and
// on the day, so that each day's gate tests every store, and a few days' gates test every file on every store.
import { expect } from 'vitest';

/** Set by scripts/test.mjs: the turn of the gate, a number that grows by one a day. */
const turn = process.env['HOLDFAST_GATE'];

/** True in a run of everything, and where a file was selected by name. */
export const FULL = turn === undefined || turn === '';

const WITHOUT_SERVER = ['memory', 'sqlite'];

/** Those of the engines that this run tests in the file that asks. Files with one `name` get the same ones. */
export function inThisRun<E extends string>(engines: readonly E[], name = expect.getState().testPath ?? ''): E[] {
  return FULL ? [...engines] : inTurn(engines, Number(turn), name);
}

/** All that need no server, and one of the others. */
export function inTurn<E extends string>(engines: readonly E[], number: number, name: string): E[] {
  const servers = engines.filter((engine) => !WITHOUT_SERVER.includes(engine));
  const [chosen] = oneInTurn(servers, number, name);
  return engines.filter((engine) => engine === chosen || !servers.includes(engine));
}

/** One of the engines, or of other things, that the gate tests in turn; all of them in a run of everything. For tests of tools, not of promises. */
export function oneInThisRun<E>(things: readonly E[], name = expect.getState().testPath ?? ''): E[] {
  return FULL ? [...things] : oneInTurn(things, Number(turn), name);
}

export function oneInTurn<E>(things: readonly E[], number: number, name: string): E[] {
  const at = (number + numberOf(name)) % things.length;
  return things.slice(at, at + 1);
}

/** A number that the path of a test file has on every machine. */
function numberOf(path: string): number {
  const name = path.slice(path.lastIndexOf('/') + 1);
  let sum = 0;
  for (const letter of name) sum += letter.charCodeAt(0);
  return sum;
}
