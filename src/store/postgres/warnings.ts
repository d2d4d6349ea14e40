// Settings of the server under which it does not keep what it acknowledges.
import { HoldfastError } from '../../errors.js';

const RISKS: Record<string, string> = {
  fsync: 'a crash of its machine may lose acknowledged jobs or damage the whole database',
  full_page_writes: 'a crash of its machine may damage the database',
  synchronous_commit: 'a crash may lose the jobs and outcomes of the last moments although they were acknowledged',
};

export const DURABILITY = `SELECT name, setting FROM pg_settings WHERE name IN ('${Object.keys(RISKS).join("', '")}')`;

type Listener = (warning: HoldfastError) => void;

/** For whoever listens: those who come late are told what was found before. */
export class Warnings {
  readonly #place: string;
  readonly #listeners = new Set<Listener>();
  #current: HoldfastError[] = [];

  constructor(place: string) {
    this.#place = place;
  }

  /** `settings`: what DURABILITY answers. */
  look(settings: unknown[][]): void {
    this.#current = settings.filter(([, value]) => value === 'off').map(([name]) => this.#warning(String(name)));
    for (const warning of this.#current) this.tell(warning);
  }

  /** To those who listen now. */
  tell(warning: HoldfastError): void {
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
      `PostgreSQL at ${this.#place} has ${name} = off: ${RISKS[name]}. Type: ALTER SYSTEM SET ${name} = on; SELECT pg_reload_conf();`,
      { store: 'postgres' },
    );
  }
}
