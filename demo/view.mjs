// The live view: which worker holds which job, how long its lock has left, and its fence. Redrawn in place on a terminal; elsewhere a line
// whenever the picture changes.
import { styleText } from 'node:util';

const BAR = 24;

export class View {
  #store;
  #queue;
  #lockDuration;
  #lines = 0;
  #last = '';
  #timer;

  constructor(store, queue, lockDuration) {
    this.#store = store;
    this.#queue = queue;
    this.#lockDuration = lockDuration;
    this.#timer = setInterval(() => void this.#draw(), process.stdout.isTTY ? 100 : 500);
  }

  stop() {
    clearInterval(this.#timer);
    this.#lines = 0;
  }

  say(text) {
    this.#erase();
    console.log(text);
  }

  async #draw() {
    const sessions = await this.#store.sessions(this.#queue);
    const rows = [];
    for (const session of sessions.sort((a, b) => a.owner.name.localeCompare(b.owner.name))) {
      const held = await this.#store.locks(this.#queue, { session: session.id });
      const left = Math.max(0, session.expiresInMs);
      const filled = Math.min(BAR, Math.round((left / this.#lockDuration) * BAR));
      const bar = `${'█'.repeat(filled)}${'░'.repeat(BAR - filled)}`;
      const jobs = held.map(({ jobId, fence }) => `job ${jobId} fence ${fence}`).join(', ') || 'idle';
      const state = session.suspected ? styleText('red', ' process gone') : '';
      rows.push([
        `  ${session.owner.name} (pid ${session.owner.pid})`,
        `${bar} ${String(Math.round(left)).padStart(5)} ms`,
        `${jobs}${state}`,
      ]);
    }
    if (process.stdout.isTTY) {
      this.#erase();
      for (const row of rows) console.log(row.join('  '));
      this.#lines = rows.length;
      return;
    }
    const picture = rows.map(([who, , what]) => `${who}: ${what}`).join(' | ');
    if (picture !== this.#last) console.log(`${styleText('dim', picture)}`);
    this.#last = picture;
  }

  #erase() {
    if (this.#lines > 0) process.stdout.write(`\u001b[${this.#lines}A\u001b[0J`);
    this.#lines = 0;
  }
}
