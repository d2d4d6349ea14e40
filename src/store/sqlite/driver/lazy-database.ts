// One interface over all bindings. Each binding passes its connection and how to compile a statement.
import type { Database, Statement, Value } from './types.js';

/** A compiled statement, as all bindings provide it. Its rows are arrays. */
export interface Compiled {
  run(...values: Value[]): { changes: number | bigint };
  get(...values: Value[]): unknown;
  all(...values: Value[]): unknown[];
}

export interface Connection {
  compile(sql: string): Compiled;
  exec(sql: string): void;
  close(): void;
  isInTransaction(): boolean;
}

export class LazyDatabase implements Database {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  prepare<Row extends Value[]>(sql: string): Statement<Row> {
    return new LazyStatement<Row>(this.#connection, sql);
  }

  exec(sql: string): void {
    this.#connection.exec(sql);
  }

  close(): void {
    this.#connection.close();
  }

  get inTransaction(): boolean {
    return this.#connection.isInTransaction();
  }
}

class LazyStatement<Row extends Value[]> implements Statement<Row> {
  readonly #connection: Connection;
  readonly #sql: string;
  #compiled: Compiled | undefined;

  constructor(connection: Connection, sql: string) {
    this.#connection = connection;
    this.#sql = sql;
  }

  run(...values: Value[]): number {
    return Number((this.#compiled ?? this.#compile()).run(...values).changes);
  }

  get(...values: Value[]): Row | undefined {
    return (this.#compiled ?? this.#compile()).get(...values) as Row | undefined;
  }

  all(...values: Value[]): Row[] {
    return (this.#compiled ?? this.#compile()).all(...values) as Row[];
  }

  #compile(): Compiled {
    this.#compiled = this.#connection.compile(this.#sql);
    return this.#compiled;
  }
}
