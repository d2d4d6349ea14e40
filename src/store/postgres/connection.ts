// The PostgreSQL store: one schema that any number of machines share. This class checks the options, and opens and closes the engine;
// operations.ts has the verbs. The rest of Holdfast calls the store only through the contract.
import type { Capabilities } from '../capabilities.js';
import type { StoreDescriptor } from '../descriptor.js';
import { Door } from '../door.js';
import { type Engine, migrate, startEngine } from './driver/engine.js';
import { planPostgres, type PostgresPlan, type PostgresStoreOptions, threadOptions } from './driver/options.js';
import { SCHEMA_VERSION } from './driver/schema.js';
import { operations } from './operations.js';

export interface Migrated {
  schema: string;
  /** The number of migrations that the schema has now. */
  version: number;
  /** The numbers of the migrations that this call ran. Empty if there was nothing to do, or if another process did it meanwhile. */
  ran: number[];
}

/** Creates or migrates the schema, for users who open their stores with `migrate: false`. */
export async function migratePostgres(options: PostgresStoreOptions): Promise<Migrated> {
  const plan = planPostgres(options);
  return { schema: plan.schema, ran: await migrate(plan), version: SCHEMA_VERSION };
}

export class PostgresStore extends Door<Engine> {
  readonly driver = 'pg';
  readonly #given: PostgresStoreOptions;
  readonly #plan: PostgresPlan;

  constructor(options: PostgresStoreOptions) {
    super(operations);
    this.#given = { ...options };
    this.#plan = planPostgres(options);
  }

  get capabilities(): Capabilities {
    const crashHints = this.engine?.hinted ?? this.#plan.notify;
    return {
      engine: 'postgres',
      shared: true,
      durable: true,
      crashHints,
      fallibleHints: crashHints,
      inline: false,
      transactions: true,
      families: true,
    };
  }

  describe(): StoreDescriptor | undefined {
    return { engine: 'postgres', options: threadOptions(this.#given) };
  }

  protected start(): Promise<Engine> {
    return startEngine(this.#plan);
  }

  protected async stop(opened: Promise<Engine | undefined>, calls: Promise<void>): Promise<void> {
    await (await opened)?.close(calls);
  }
}
