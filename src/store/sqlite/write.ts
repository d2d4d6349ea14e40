// The verb `write` of the SQLite store: data, progress and logs of a job, under its token if one is given, and events of users.
import { unfinished } from '../unfinished.js';
import type { SettleStatus } from '../../job/outcome.js';
import { isLargeValue } from '../budget.js';
import type { JobWrite, Write, WriteReply } from '../contract/index.js';
import type { Database, Statement } from './driver/load.js';
import { sql } from './driver/sql.js';
import { AT, type FoundRow, splitToken } from './record.js';
import { LARGE_VALUE } from './state/event-rows.js';
import type { QueueState } from './state/queue-state.js';
import { STATE } from './state/schema.js';
import type { Transaction } from './state/transaction.js';

interface Target {
  job: number;
  logFirst: number;
  logNext: number;
}

export class Writing {
  readonly #find: Statement<FoundRow>;
  readonly #data: Statement;
  readonly #progress: Statement;
  readonly #addLog: Statement;
  readonly #trimLogs: Statement;
  readonly #setLogs: Statement;

  constructor(db: Database) {
    this.#find = sql(db, 'find-job', 'queue id');
    this.#data = sql(db, 'write-data', 'data job');
    this.#progress = sql(db, 'write-progress', 'progress job');
    this.#addLog = sql(db, 'add-log', 'job number row');
    this.#trimLogs = sql(db, 'trim-logs', 'job first');
    this.#setLogs = sql(db, 'set-logs', 'first next job');
  }

  write(transaction: Transaction, name: string, write: Write): WriteReply {
    if (write.kind === 'event') {
      transaction.queue(name).record(write.name, undefined, { args: write.args });
      return { status: 'done' };
    }
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
      case 'step':
        return unfinished('steps');
    }
  }

  #target(queue: QueueState, { jobId, token }: JobWrite): Target | SettleStatus {
    const row = this.#find.get(queue.queue, jobId);
    if (row === undefined) return 'missing';
    const { [AT.job]: job, [AT.logNext]: logNext, [AT.state]: state, [AT.session]: session, [AT.fence]: fence } = row;
    if (token !== undefined) {
      const owner = splitToken(token);
      if (state !== STATE.active || session !== owner.session || fence !== owner.fence) return 'lost';
    }
    return { job, logFirst: row[AT.logFirst], logNext };
  }

  #keepNewest({ job, logFirst, logNext }: Target, keep: number): number {
    const first = Math.max(logFirst, logNext - keep);
    if (first > logFirst) this.#trimLogs.run(job, first);
    this.#setLogs.run(first, logNext, job);
    return logNext - first;
  }
}
