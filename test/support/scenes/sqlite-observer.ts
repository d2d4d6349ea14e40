// Stands for better-sqlite3 in tests that look into a database, when the store runs on another driver (HOLDFAST_SQLITE_DRIVER): two copies of SQLite in one
// process would drop each other's file locks. It has the part of better-sqlite3's interface that the tests use.
import { readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

type Row = Record<string, unknown>;

interface NodeStatement {
  run(...values: unknown[]): { changes: number };
  get(...values: unknown[]): Row | undefined;
  all(...values: unknown[]): Row[];
}

interface NodeDatabase {
  prepare(sql: string): NodeStatement;
  exec(sql: string): void;
  close(): void;
}

type Shape = 'object' | 'array' | 'value';

const { DatabaseSync } = load();

export default class Database {
  readonly #db: NodeDatabase;

  constructor(file: string, { readonly = false }: { readonly?: boolean } = {}) {
    this.#db = new DatabaseSync(file, { readOnly: readonly });
    this.#db.exec('PRAGMA busy_timeout = 5000');
  }

  prepare(sql: string): Statement {
    return new Statement(this.#db.prepare(sql));
  }

  pragma(text: string, { simple = false }: { simple?: boolean } = {}): unknown {
    const statement = this.prepare(`PRAGMA ${text}`);
    return simple ? statement.pluck().get() : statement.all();
  }

  exec(sql: string): void {
    this.#db.exec(sql);
  }

  transaction<Args extends unknown[]>(work: (...args: Args) => unknown): (...args: Args) => void {
    return (...args) => {
      this.exec('BEGIN');
      work(...args);
      this.exec('COMMIT');
    };
  }

  close(): void {
    this.#db.close();
  }
}

class Statement {
  readonly #statement: NodeStatement;
  #shape: Shape = 'object';

  constructor(statement: NodeStatement) {
    this.#statement = statement;
  }

  pluck(): this {
    this.#shape = 'value';
    return this;
  }

  raw(): this {
    this.#shape = 'array';
    return this;
  }

  run(...values: unknown[]): { changes: number } {
    return this.#statement.run(...values);
  }

  get(...values: unknown[]): unknown {
    const row = this.#statement.get(...values);
    return row === undefined ? undefined : this.#shaped(row);
  }

  all(...values: unknown[]): unknown[] {
    return this.#statement.all(...values).map((row) => this.#shaped(row));
  }

  #shaped(row: Row): unknown {
    if (this.#shape === 'object') return { ...row };
    return this.#shape === 'array' ? Object.values(row) : Object.values(row)[0];
  }
}

function load(): { DatabaseSync: new (file: string, options: { readOnly: boolean }) => NodeDatabase } {
  if (process.env['HOLDFAST_SQLITE_DRIVER'] === 'node:sqlite') return createRequire(import.meta.url)('node:sqlite');
  const folder = fileURLToPath(new URL(`../../../prebuilt/${process.platform}-${process.arch}`, import.meta.url));
  return createRequire(import.meta.url)(join(folder, readdirSync(folder).sort()[0] ?? ''));
}
