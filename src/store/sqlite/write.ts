// The verb `write` of the SQLite store: data, progress and logs of a job, under its token if one is given, and events of users.
import type { SettleStatus } from '../../job/outcome.js';
import { isFinished } from '../../job/state.js';
import { isLargeValue } from '../budget.js';
import type { JobWrite, Write, WriteReply } from '../contract/index.js';
import type { Database, Statement } from './driver/load.js';
import { sql } from './driver/sql.js';
import type { Leaving } from './leave.js';
import { AT, fieldsOf, type FoundRow, splitToken, stateOf } from './record.js';
import { LARGE_VALUE } from './state/event-rows.js';
import type { QueueState } from './state/queue-state.js';
import { STATE } from './state/schema.js';
import type { Steps } from './state/steps.js';
import type { Transaction } from './state/transaction.js';

type StepWrite = Extract<Write, { kind: 'step' }>;

/** The row of a job, and the numbers of its first and of its next log row. */
interface Logged {
  job: number;
  logFirst: number;
  logNext: number;
}

export class Writing {
  readonly #leaving: Leaving;
  readonly #steps: Steps;
  readonly #find: Statement<FoundRow>;
  readonly #data: Statement;
  readonly #progress: Statement;
  readonly #addLog: Statement;
  readonly #trimLogs: Statement;
  readonly #setLogs: Statement;
  readonly #promote: Statement;

  constructor(db: Database, leaving: Leaving, steps: Steps) {
    this.#leaving = leaving;
    this.#steps = steps;
    this.#find = sql(db, 'find-job', 'queue id');
    this.#data = sql(db, 'write-data', 'data job');
    this.#progress = sql(db, 'write-progress', 'progress job');
    this.#addLog = sql(db, 'add-log', 'job number row');
    this.#trimLogs = sql(db, 'trim-logs', 'job first');
    this.#setLogs = sql(db, 'set-logs', 'first next job');
    this.#promote = sql(db, 'promote', 'ord job');
  }

  write(transaction: Transaction, name: string, write: Write): WriteReply {
    if (write.kind === 'event') {
      transaction.queue(name).recordAny(write.name, undefined, { args: write.args });
      return { status: 'done' };
    }
    const queue = transaction.find(name);
    const row = queue === undefined ? 'missing' : this.#target(queue, write);
    if (queue === undefined || typeof row === 'string') return { status: row as SettleStatus };
    const target: Logged = { job: row[AT.job], logFirst: row[AT.logFirst], logNext: row[AT.logNext] };
    switch (write.kind) {
      case 'data':
        this.#data.run(write.data, target.job);
        return { status: 'done' };
      case 'progress':
        this.#progress.run(write.progress, target.job);
        queue.record('progress', write.jobId, isLargeValue(write.progress) ? LARGE_VALUE : { data: write.progress });
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
        return this.#writeStep(queue, row, write);
    }
  }

  /** Records a step of the owner, or a signal. */
  #writeStep(queue: QueueState, row: FoundRow, { name, value, token }: StepWrite): WriteReply {
    const state = stateOf(row[AT.state]);
    if (token === undefined && isFinished(state)) return { status: 'ended' };
    const recorded = this.#steps.record(row, { name, value });
    if (recorded === undefined) return { status: 'full' };
    if (token !== undefined) this.#steps.clearStalls(row);
    else if (state === 'delayed' && fieldsOf(row).awaits === name) {
      this.#promote.run(queue.toBack(), row[AT.job]);
      this.#leaving.wait(queue, row, 'delayed');
    }
    return { status: 'done', value: recorded };
  }

  #target(queue: QueueState, { jobId, token }: JobWrite): FoundRow | SettleStatus {
    const row = this.#find.get(queue.queue, jobId);
    if (row === undefined) return 'missing';
    const { [AT.state]: state, [AT.session]: session, [AT.fence]: fence } = row;
    if (token !== undefined) {
      const owner = splitToken(token);
      if (state !== STATE.active || session !== owner.session || fence !== owner.fence) return 'lost';
    }
    return row;
  }

  #keepNewest({ job, logFirst, logNext }: Logged, keep: number): number {
    const first = Math.max(logFirst, logNext - keep);
    if (first > logFirst) this.#trimLogs.run(job, first);
    this.#setLogs.run(first, logNext, job);
    return logNext - first;
  }
}
