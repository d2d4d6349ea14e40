// The verb `write` of the SQLite store: data, progress and logs of a job, under its token if one is given.
import type { SettleStatus } from '../../job/outcome.js';
import { isLargeValue } from '../budget.js';
import type { Write, WriteReply } from '../contract/index.js';
import type { Database, Statement } from './driver.js';
import { splitToken } from './job-row.js';
import { LARGE_VALUE, type QueueState } from './queue-state.js';
import { STATE } from './schema.js';
import type { Transaction } from './transaction.js';

interface Target {
  job: number;
  logFirst: number;
  logNext: number;
}

export class Writing {
  readonly #find: Statement<
    [job: number, state: number, session: string | null, fence: number | null, logFirst: number, logNext: number]
  >;
  readonly #data: Statement;
  readonly #progress: Statement;
  readonly #addLog: Statement;
  readonly #trimLogs: Statement;
  readonly #setLogs: Statement;

  constructor(db: Database) {
    this.#find = db.prepare('SELECT job, state, session, fence, logFirst, logNext FROM jobs WHERE queue = ? AND id = ?');
    this.#data = db.prepare('UPDATE jobs SET data = ? WHERE job = ?');
    this.#progress = db.prepare('UPDATE jobs SET progress = ? WHERE job = ?');
    this.#addLog = db.prepare('INSERT INTO logs (job, number, row) VALUES (?, ?, ?)');
    this.#trimLogs = db.prepare('DELETE FROM logs WHERE job = ? AND number < ?');
    this.#setLogs = db.prepare('UPDATE jobs SET logFirst = ?, logNext = ? WHERE job = ?');
  }

  write(transaction: Transaction, name: string, write: Write): WriteReply {
    const queue = transaction.find(name);
    const target = queue === undefined ? 'missing' : this.#target(queue, write);
    if (queue === undefined || typeof target === 'string') return { status: target as SettleStatus };
    switch (write.kind) {
      case 'data':
        this.#data.run(write.data, target.job);
        return { status: 'done' };
      case 'progress':
        this.#progress.run(write.progress, target.job);
        queue.tell('progress', write.jobId, isLargeValue(write.progress) ? LARGE_VALUE : { data: write.progress });
        return { status: 'done' };
      case 'log':
        this.#addLog.run(target.job, target.logNext, write.row);
        return {
          status: 'done',
          count: this.#keepNewest({ ...target, logNext: target.logNext + 1 }, write.keep ?? Number.POSITIVE_INFINITY),
        };
      case 'clearLogs':
        return { status: 'done', count: this.#keepNewest(target, write.keep ?? 0) };
    }
  }

  #target(queue: QueueState, { jobId, token }: Write): Target | SettleStatus {
    const row = this.#find.get(queue.queue, jobId);
    if (row === undefined) return 'missing';
    const [job, state, session, fence, logFirst, logNext] = row;
    if (token !== undefined) {
      const owner = splitToken(token);
      if (state !== STATE.active || session !== owner.session || fence !== owner.fence) return 'lost';
    }
    return { job, logFirst, logNext };
  }

  #keepNewest({ job, logFirst, logNext }: Target, keep: number): number {
    const first = Math.max(logFirst, logNext - keep);
    if (first > logFirst) this.#trimLogs.run(job, first);
    this.#setLogs.run(first, logNext, job);
    return logNext - first;
  }
}
