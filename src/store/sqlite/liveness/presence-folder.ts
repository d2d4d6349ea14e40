// The folder of the presence files. The store uses a name, recorded by a session or found in the folder, only if it matches the
// pattern of presence files. It opens or deletes a file only if the file looks like a presence file, so it never touches links and
// files of others.
import { randomUUID } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { HoldfastError } from '../../../errors.js';

/** Mark of the process (pid and start time), on Linux the number of the thread, then a UUID. */
const NAME = /^\d+-\d+-(?:\d+-)?[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const OTHERS_WRITE = 0o022;

export class PresenceFolder {
  readonly #folder: string;

  constructor(storePath: string) {
    this.#folder = `${storePath}-presence`;
  }

  /** Creates the folder. Throws CRASH_HINTS_OFF unless the folder exists and belongs to this user alone. */
  make(): void {
    try {
      // Not `recursive`, because that would accept a link to a folder.
      fs.mkdirSync(this.#folder, { mode: 0o700 });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST')
        throw this.off(`cannot be made (${(error as Error).message})`, error);
    }
    const reason = this.#whyUnsafe();
    if (reason !== undefined) throw this.off(reason);
  }

  /** Creates an empty file with an unused name. Returns the name. */
  create(mark: string): string {
    const name = `${mark}-${randomUUID()}`;
    const { O_CREAT, O_EXCL, O_RDWR, O_NOFOLLOW } = fs.constants;
    try {
      fs.closeSync(fs.openSync(this.pathOf(name), O_CREAT | O_EXCL | O_RDWR | O_NOFOLLOW, 0o600));
    } catch (error) {
      throw this.off(`cannot be written to (${(error as Error).message})`, error);
    }
    return name;
  }

  /** Returns whether the folder is safe and contains a presence file of this name. Costs 5 µs. */
  has(name: string): boolean {
    if (!NAME.test(name) || this.#whyUnsafe() !== undefined) return false;
    const stats = fs.lstatSync(path.join(this.#folder, name), { throwIfNoEntry: false });
    // Presence files are databases without content.
    return stats !== undefined && stats.isFile() && stats.size === 0 && stats.nlink === 1 && isOwn(stats);
  }

  /** Returns the names of all presence files; none if no process has opened a session yet. */
  list(): string[] {
    try {
      return this.#whyUnsafe() === undefined ? fs.readdirSync(this.#folder).filter((name) => this.has(name)) : [];
    } catch {
      return [];
    }
  }

  remove(name: string): void {
    try {
      if (this.has(name)) fs.unlinkSync(this.pathOf(name));
    } catch {
      // Windows refuses to delete an open file. The next cleanup deletes it.
    }
  }

  pathOf(name: string): string {
    if (!NAME.test(name)) throw new TypeError('no name of a presence file');
    return path.join(this.#folder, name);
  }

  #whyUnsafe(): string | undefined {
    const stats = fs.lstatSync(this.#folder, { throwIfNoEntry: false });
    if (stats === undefined) return 'is missing';
    if (stats.isSymbolicLink()) return 'is a link. Remove the link';
    if (!stats.isDirectory()) return 'is not a folder. Rename that file';
    if (!isOwn(stats)) return 'belongs to another user. Run all processes that use the store as one user, and remove the folder';
    if (process.platform === 'win32' || (stats.mode & OTHERS_WRITE) === 0) return undefined;
    return this.#tightened() ? undefined : `can be written to by other users. Run: chmod 700 ${this.#folder}`;
  }

  /**
   * Earlier versions created the folder with the process's umask. If the folder contains only presence files, it is certainly a
   * presence folder, so its permissions may be tightened.
   */
  #tightened(): boolean {
    try {
      if (!fs.readdirSync(this.#folder).every((name) => NAME.test(name))) return false;
      fs.chmodSync(this.#folder, 0o700);
      return true;
    } catch {
      return false;
    }
  }

  off(reason: string, cause?: unknown): HoldfastError {
    return new HoldfastError(
      'CRASH_HINTS_OFF',
      `The store works without crash hints, so a dead worker is found only when its session expires: ${this.#folder} ${reason}.`,
      { cause, store: 'sqlite' },
    );
  }
}

/** Always true on Windows, which has no owners of this kind. */
function isOwn({ uid }: fs.Stats): boolean {
  return process.geteuid === undefined || uid === process.geteuid();
}
