// Freezes a process at a moment when others can do without it: one that is stopped inside a transaction keeps a SQLite file locked for
// everybody until it goes on, and there is nothing that the others could do about it.
import { createRequire } from 'node:module';
import { setTimeout as sleep } from 'node:timers/promises';
import type BetterSqlite3 from 'better-sqlite3';
import type { WorkerProcess } from './worker-process.js';
import type { Scene } from '../scenes/scene.js';

const Database = createRequire(import.meta.url)('better-sqlite3') as typeof BetterSqlite3;

const PATIENCE_MS = 500;

/** `file`: a SQLite file of the test's own that the process writes too. */
export async function freeze(process: WorkerProcess, { store }: Pick<Scene, 'store'>, file?: string): Promise<void> {
  for (;;) {
    await process.freeze();
    // Any write will do, on a queue that nobody looks at.
    const written = store.configure('freezing', { paused: false }).then(() => file === undefined || isFree(file));
    if (await Promise.race([written, sleep(PATIENCE_MS, false)])) return;
    process.thaw();
    await written;
  }
}

function isFree(file: string): boolean {
  const db = new Database(file, { timeout: 0 });
  try {
    db.exec('BEGIN IMMEDIATE; ROLLBACK');
    return true;
  } catch {
    return false;
  } finally {
    db.close();
  }
}
