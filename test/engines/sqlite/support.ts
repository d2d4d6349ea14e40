// What the tests of the SQLite store share: a folder that is gone afterwards, stores that are closed, and other processes.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach } from 'vitest';
import { SqliteStore, type SqliteStoreOptions } from '../../../src/store/sqlite/index.js';

export { newJob, newSession } from '../../unit/store-samples.js';

const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** Runs after the test, the last one first. */
export function afterwards(cleanup: () => unknown): void {
  cleanups.push(cleanup);
}

export function newFolder(): string {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'holdfast-sqlite-'));
  afterwards(() => fs.rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export function newFile(): string {
  return path.join(newFolder(), 'jobs.db');
}

export async function openStore(options: SqliteStoreOptions): Promise<SqliteStore> {
  const store = new SqliteStore(options);
  afterwards(() => store.close());
  await store.open();
  return store;
}

/** Another process with a store of its own. */
export class StoreProcess {
  readonly #child: ChildProcess;
  #number = 0;

  private constructor(child: ChildProcess) {
    this.#child = child;
  }

  /** `within`: a command that runs it, such as `['unshare', '--time']`. */
  static async start(file: string, within: string[] = []): Promise<StoreProcess> {
    const program = fileURLToPath(new URL('child.mjs', import.meta.url));
    const [command, ...args] = [...within, process.execPath, program, file];
    const child = spawn(command, args, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
    const ended = once(child, 'exit');
    afterwards(() => {
      child.kill('SIGKILL');
      return ended;
    });
    await once(child, 'message');
    return new StoreProcess(child);
  }

  /** Carries out a verb of the store there. */
  call<T = unknown>(verb: string, ...args: unknown[]): Promise<T> {
    const number = (this.#number += 1);
    return new Promise((resolve, reject) => {
      const onExit = (): void => reject(new Error(`the process ended during ${verb}`));
      const onMessage = (message: { number: number; reply?: T; error?: { code: string; message: string } }): void => {
        if (message.number !== number) return;
        this.#child.off('message', onMessage).off('exit', onExit);
        if (message.error === undefined) resolve(message.reply as T);
        else reject(Object.assign(new Error(message.error.message), { code: message.error.code }));
      };
      this.#child.on('message', onMessage).once('exit', onExit);
      this.#child.send({ number, verb, args });
    });
  }

  async kill(): Promise<void> {
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await ended;
  }

  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.#child.kill(signal);
  }

  /** Ends by itself, without a close of the store. */
  async leave(): Promise<void> {
    const ended = once(this.#child, 'exit');
    this.#child.disconnect();
    await ended;
  }

  /** Ends by itself when nothing is left to do. */
  async end(): Promise<void> {
    const ended = once(this.#child, 'exit');
    await this.call('close');
    await ended;
  }
}
