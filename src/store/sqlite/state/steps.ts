// The steps of jobs (table `steps`). All rules are those of the file `steps` of the contract.
import { MAX_STEP_BYTES, MAX_STEPS, type Step } from '../../contract/index.js';
import { extrasText, MARK } from '../../marks.js';
import type { Database, Statement } from '../driver/load.js';
import { sql } from '../driver/sql.js';
import { AT, fieldsOf, type FoundRow } from '../record.js';

export class Steps {
  readonly #find: Statement<[number: number, value: string]>;
  readonly #last: Statement<[number: number, total: number]>;
  readonly #insert: Statement;
  readonly #read: Statement<[name: string, value: string]>;
  readonly #delete: Statement;
  readonly #setExtras: Statement;
  readonly #clearStalls: Statement;

  constructor(db: Database) {
    this.#find = sql(db, 'find-step', 'job name');
    this.#last = sql(db, 'last-step', 'job');
    this.#insert = sql(db, 'insert-step', 'job number name value total');
    this.#read = sql(db, 'read-steps', 'job');
    this.#delete = sql(db, 'delete-steps', 'job number');
    this.#setExtras = sql(db, 'set-extras', 'cleared added extras job');
    this.#clearStalls = sql(db, 'clear-stalls', 'job');
  }

  of(row: FoundRow): Step[] {
    return hasSteps(row) ? this.#read.all(row[AT.job]).map(([name, value]) => ({ name, value })) : [];
  }

  has(row: FoundRow, name: string): boolean {
    return hasSteps(row) && this.#find.get(row[AT.job], name) !== undefined;
  }

  /** Records a step unless the name is recorded. Returns the recorded value; undefined if there is no room. */
  record(row: FoundRow, { name, value }: Step): string | undefined {
    const job = row[AT.job];
    const recorded = hasSteps(row) ? this.#find.get(job, name)?.[1] : undefined;
    if (recorded !== undefined) return recorded;
    const [last, before] = this.#last.get(job) ?? [0, 0];
    const total = before + Buffer.byteLength(name) + Buffer.byteLength(value);
    if (last >= MAX_STEPS || total > MAX_STEP_BYTES) return undefined;
    this.#insert.run(job, last + 1, name, value, total);
    if (!hasSteps(row)) this.#setExtras.run(0, MARK.steps, extrasText({ ...fieldsOf(row), hasSteps: true }), job);
    return value;
  }

  /** Call it when the owner of a job has recorded a step. */
  clearStalls(row: FoundRow): void {
    if (row[AT.stalledCounter] > 0) this.#clearStalls.run(row[AT.job]);
  }

  /** Sets the signal that a job with steps waits for, when it becomes delayed. The caller passes the row as it is in the file. */
  setAwaited(row: FoundRow, name: string | undefined): void {
    const { awaits: older, ...others } = fieldsOf(row);
    if (!hasSteps(row) || older === name) return;
    this.#setExtras.run(0, 0, extrasText(name === undefined ? others : { ...others, awaits: name }), row[AT.job]);
  }

  /** Deletes the step of this name and all later ones. Returns false if there is no such step. */
  dropFrom(row: FoundRow, name: string): boolean {
    const number = hasSteps(row) ? this.#find.get(row[AT.job], name)?.[0] : undefined;
    if (number === undefined) return false;
    this.#delete.run(row[AT.job], number);
    return true;
  }

  /** Call it when the row of a job with steps is deleted. */
  clear(job: number): void {
    this.#delete.run(job, 1);
  }
}

function hasSteps({ [AT.marks]: marks }: FoundRow): boolean {
  return (marks & MARK.steps) !== 0;
}
