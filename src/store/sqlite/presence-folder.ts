// The folder of the presence files as the file system sees it. A name that a session recorded, or that lies in the folder, is used only
// if it has the pattern of ours, and its file only if it looks like one of ours: links and files of others are neither opened nor deleted.
import { randomUUID } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { HoldfastError } from '../../errors.js';

/** Mark of the process (pid and start), where it is known that of the thread, then a UUID. */
const NAME = /^\d+-\d+-(?:\d+-)?[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const OTHERS_WRITE = 0o022;

export class PresenceFolder {
  readonly #folder: string;

  constructor(storePath: string) {
    this.#folder = `${storePath}-presence`;
  }

  /** Throws CRASH_HINTS_OFF unless the folder is there and belongs to this user alone. */
  make(): void {
    try {
      // Without `recursive`, which would accept a link to a folder.
      fs.mkdirSync(this.#folder, { mode: 0o700 });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST')
        throw this.off(`cannot be made (${(error as Error).message})`, error);
    }
    const reason = this.#whyUnsafe();
    if (reason !== undefined) throw this.off(reason);
  }

  /** A new empty file, whose name is not in use. */
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

  /** Whether the folder is safe and holds a file of ours by this name. Costs 5 µs. */
  has(name: string): boolean {
    if (!NAME.test(name) || this.#whyUnsafe() !== undefined) return false;
    const stats = fs.lstatSync(path.join(this.#folder, name), { throwIfNoEntry: false });
    // Presence files are databases without any content.
    return stats !== undefined && stats.isFile() && stats.size === 0 && stats.nlink === 1 && isOwn(stats);
  }

  /** The names of our files. Nothing where no process has opened a session yet. */
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
      // Windows refuses while it is open; the next cleaner gets it.
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
    return this.#tightened() ? undefined : `can be written to by other users. Type: chmod 700 ${this.#folder}`;
  }

  /** Earlier versions made the folder with the process's umask. It is certainly ours if it holds nothing but our files. */
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

/** Windows has no owners of this kind. */
function isOwn({ uid }: fs.Stats): boolean {
  return process.geteuid === undefined || uid === process.geteuid();
}
