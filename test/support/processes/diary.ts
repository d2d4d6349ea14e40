// The diary of a process (test/faults/fixtures/diary.mjs), read on from where the last look ended.
import { closeSync, existsSync, openSync, readSync } from 'node:fs';

export interface Note {
  event: string;
  /** Milliseconds of the monotonic clock, which all processes of this host share. */
  at: number;
  pid: number;
  [field: string]: unknown;
}

export class Diary {
  readonly #notes: Note[] = [];
  readonly #file: string;
  #offset = 0;
  #rest = '';

  constructor(file: string) {
    this.#file = file;
  }

  get file(): string {
    return this.#file;
  }

  /** All that was written so far, or what is called so. */
  notes(event?: string): Note[] {
    this.#read();
    return event === undefined ? this.#notes : this.#notes.filter((note) => note.event === event);
  }

  #read(): void {
    if (!existsSync(this.#file)) return;
    const descriptor = openSync(this.#file, 'r');
    const chunk = Buffer.alloc(1 << 16);
    for (;;) {
      const size = readSync(descriptor, chunk, 0, chunk.length, this.#offset);
      if (size === 0) break;
      this.#offset += size;
      const lines = (this.#rest + chunk.toString('latin1', 0, size)).split('\n');
      this.#rest = lines.pop() ?? '';
      for (const line of lines) this.#notes.push(JSON.parse(line) as Note);
    }
    closeSync(descriptor);
  }
}
