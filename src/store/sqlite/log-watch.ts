// Asks the file system to tell when SQLite's log is written. That costs nothing while nothing happens, but it does not work on every file
// system, and it would wake a busy process for every commit of its own: it is for processes that rest.
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

  /** False where the file cannot be watched. */
  watch(): boolean {
    if (!this.#isTrusted) return false;
    try {
      this.#watcher = fs.watch(this.#path, { persistent: false }, () => this.isWatching && this.#onWrite());
      this.#watcher.on('error', this.#onError);
      return true;
    } catch {
      // No log yet, or no watches left.
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

  /** Something was written and the file system did not tell. */
  distrust(): void {
    this.#isTrusted = false;
    this.stop();
  }
}
