// Warnings about server settings with which acknowledged writes can be lost. The engine checks the settings at start and after each
// reconnect.
import { HoldfastError } from '../../../errors.js';

/** The settings that `schema/durability` in sql/schema.sql reads, and what they risk. */
const RISKS: Record<string, string> = {
  fsync: 'a crash of its machine may lose acknowledged jobs or damage the whole database',
  full_page_writes: 'a crash of its machine may damage the database',
  synchronous_commit: 'a crash may lose the jobs and outcomes of the last moments although they were acknowledged',
};

type Listener = (warning: HoldfastError) => void;

/** Passes warnings to listeners. A listener that subscribes late gets the current warnings at once. */
export class Warnings {
  readonly #place: string;
  readonly #listeners = new Set<Listener>();
  #current: HoldfastError[] = [];

  constructor(place: string) {
    this.#place = place;
  }

  /** `settings`: the rows that `schema/durability` in sql/schema.sql returns. */
  look(settings: unknown[][]): void {
    this.#current = settings.filter(([, value]) => value === 'off').map(([name]) => this.#warning(String(name)));
    for (const warning of this.#current) this.report(warning);
  }

  /** Emits a warning to the listeners of this moment only. */
  report(warning: HoldfastError): void {
    for (const listener of this.#listeners) listener(warning);
  }

  listen(listener: Listener): () => void {
    const call: Listener = (warning) => listener(warning);
    this.#listeners.add(call);
    for (const warning of this.#current) call(warning);
    return () => void this.#listeners.delete(call);
  }

  #warning(name: string): HoldfastError {
    return new HoldfastError(
      'STORE_UNSAFE',
      `PostgreSQL at ${this.#place} has ${name} = off: ${RISKS[name]}. Run: ALTER SYSTEM SET ${name} = on; SELECT pg_reload_conf();`,
      { store: 'postgres' },
    );
  }
}
