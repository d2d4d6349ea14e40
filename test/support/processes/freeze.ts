// Freezes a process at a moment when its store can do without it: one that is stopped inside a transaction keeps a SQLite file locked for
// everybody until it goes on, and there is nothing that the others could do about it.
import { setTimeout as sleep } from 'node:timers/promises';
import type { WorkerProcess } from './worker-process.js';
import type { Scene } from '../scenes/scene.js';

const PATIENCE_MS = 500;

export async function freeze(process: WorkerProcess, { store }: Pick<Scene, 'store'>): Promise<void> {
  for (;;) {
    await process.freeze();
    // Any write will do, on a queue that nobody looks at.
    const written = store.configure('freezing', { paused: false }).then(() => true);
    if (await Promise.race([written, sleep(PATIENCE_MS, false)])) return;
    process.thaw();
    await written;
  }
}
