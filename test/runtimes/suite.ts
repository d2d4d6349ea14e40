// The tests that must pass on each runtime: the contract of the SQLite store, a blocked event loop, and the examples. The gate tests the
// blocked loop on each.
import { execFile } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, test } from 'vitest';
import { FULL } from '../support/run/matrix.js';
import { type Compiled, compiledOnce, missingOutput, promisedOutput, runProgram } from '../support/processes/program.js';
import { type Runtime, type RuntimeName, runtime } from './runtimes.js';

const INSTALL_MS = 120_000;
const LIMIT_MS = 240_000;
/** In memory, where the system has such files: the programs wait for the disk most of their time. */
const FILES = existsSync('/dev/shm') ? { TMPDIR: '/dev/shm' } : {};
const examples = fileURLToPath(new URL('../../examples', import.meta.url));

export function runtimeSuite(name: RuntimeName): void {
  const smoke = !FULL;
  describe(`on ${name}`, () => {
    let on: Runtime;
    let compiled: Compiled;

    beforeAll(() => {
      on = runtime(name);
      if (smoke) return;
      compiled = compiledOnce(examples);
      expect(compiled.messages).toEqual([]);
    }, INSTALL_MS);

    async function report(program: string): Promise<Record<string, unknown>> {
      const [command = '', ...args] = on.command;
      const file = fileURLToPath(new URL(`fixtures/${program}`, import.meta.url));
      const { HOLDFAST_URL: _, ...env } = process.env;
      const options = { env: { ...env, ...FILES, ...on.env }, cwd: tmpdir(), timeout: LIMIT_MS, killSignal: 'SIGKILL' as const };
      const { stdout } = await promisify(execFile)(command, [...args, file], options);
      return JSON.parse(stdout) as Record<string, unknown>;
    }

    test.skipIf(smoke)(
      'the SQLite store conforms to the contract',
      async () => {
        const { driver, passed, failed } = await report('conformance.mjs');
        expect(failed).toEqual([]);
        expect(driver).toBe(on.driver);
        expect(passed).toBeGreaterThan(400);
      },
      LIMIT_MS,
    );

    test(
      'a job whose handler blocks the event loop past its lock runs once',
      async () => {
        expect(await report('blocked-loop.mjs')).toEqual({
          runs: 1,
          ranElsewhere: false,
          heldAtEnd: true,
          state: 'completed',
          returnvalue: 'done',
          stalled: 0,
          lockThread: 'thread',
          driver: on.driver,
        });
      },
      LIMIT_MS,
    );

    test.skipIf(smoke)(
      'a user’s transaction on the SQLite of the runtime adds and completes jobs, and any other connection is refused',
      async () => {
        const { driver, other, outside, stale, ...found } = await report('transactions.mjs');
        expect(driver).toBe(on.driver);
        expect(other).toContain('INVALID_OPTION');
        if (on.driver !== 'node:sqlite') {
          expect(other).toContain('Install better-sqlite3 12');
          return;
        }
        expect(outside).toContain('No transaction is open');
        expect(stale).toContain('STORE_BUSY');
        expect(found).toEqual({ counts: [0, 1, 1], steps: 1, rows: 1 });
      },
      LIMIT_MS,
    );

    test.skipIf(smoke)(
      'the examples print what they say, and no warning',
      async () => {
        const files = readdirSync(examples).filter((file) => /\.(ts|mjs|cjs)$/.test(file) && !on.leftOut.includes(file));
        expect(files.length).toBeGreaterThan(5);
        const wrong: string[] = [];
        // One by one: their locks are short.
        for (const file of files) wrong.push(...(await whatIsWrong(file)));
        expect(wrong).toEqual([]);
      },
      LIMIT_MS,
    );

    async function whatIsWrong(file: string): Promise<string[]> {
      const promised = promisedOutput(readFileSync(join(examples, file), 'utf8'));
      const { end, stdout, stderr } = await runProgram(compiled.fileOf(file), on.env, on.command);
      const missing = missingOutput(promised.map(inOneLine), inOneLine(stdout));
      if (end === 'exit 0' && missing === undefined && !stderr.includes('ExperimentalWarning')) return [];
      return [`${file}: ${end}, without: ${missing}\n${stdout}${stderr}`];
    }
  });
}

/** Bun prints objects in several lines, with a comma behind the last property. */
function inOneLine(text: string): string {
  return text.replace(/\s+/g, ' ').replaceAll(', }', ' }').replaceAll(', ]', ' ]').trim();
}
