// Asks the file system for a notification when SQLite's log is written. That costs nothing while nothing is written. But it does
// not work on every file system, and it would wake a busy process for each of its own commits. So only a resting process uses it.
import fs from 'node:fs';

export class LogWatch {
  readonly #path: string;
  readonly #onWrite: () => void;
  #watcher: fs.FSWatcher | undefined;
  #isTrusted = true;

  constructor(path: string, onWrite: () => void) {
    this.#path = path;
    this.#onWrite = onWrite;
  }

  get isWatching(): boolean {
    return this.#watcher !== undefined;
  }

  /** Starts watching. Returns false if the file cannot be watched. */
  watch(): boolean {
    if (!this.#isTrusted) return false;
    try {
      this.#watcher = fs.watch(this.#path, { persistent: false }, () => this.isWatching && this.#onWrite());
      this.#watcher.on('error', this.#onError);
      return true;
    } catch {
      // There is no log yet, or the system has no watches left.
      return false;
    }
  }

  readonly #onError = (): void => {
    this.distrust();
    this.#onWrite();
  };

  stop(): void {
    this.#watcher?.close();
    this.#watcher = undefined;
  }

  /** Call it when the file system did not report a write. Polling replaces the watch from then on. */
  distrust(): void {
    this.#isTrusted = false;
    this.stop();
  }
}
