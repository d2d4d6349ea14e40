// Connects to the server and builds the parts of the store: server, wake, presence, listener. The store opens and closes it.
import { randomBytes } from 'node:crypto';
import type { HoldfastError } from '../../../errors.js';
import { within } from '../../../runtime/within.js';
import type { WatchedChange } from '../../contract/index.js';
import { newSocket } from './address.js';
import { type Driver, loadDriver, type PgClient, type PgPool } from './driver.js';
import { Listener } from './listener.js';
import { placeOf, type PostgresPlan } from './options.js';
import { Presence, type Vouching } from '../liveness/presence.js';
import { Detours } from '../state/detours.js';
import { Fitting } from '../state/fitting.js';
import { Joined } from '../state/joined.js';
import { CallOrder } from '../state/call-order.js';
import { Relays } from '../state/relays.js';
import { prepareSchema } from './schema.js';
import { type Calls, Server } from './server.js';
import { sqlOf } from './sql.js';
import { Wake } from '../wake.js';
import { Warnings } from './warnings.js';

/**
 * How long, in ms, the first session waits for the connection that vouches for it. It works without one, but a crash is noticed later.
 */
const PRESENCE_MS = 2000;
const KEEPALIVE_MS = 10_000;
/** How long closing waits for calls under way, in ms. */
const CLOSE_MS = 5000;
/** Idle connections end after this many ms, except one, so that a renewal does not have to resolve a host name first. */
const IDLE_MS = 60_000;

export async function startEngine(plan: PostgresPlan): Promise<Engine> {
  const driver = plan.pool === undefined ? await loadDriver() : undefined;
  const server = connect(plan, driver);
  try {
    const { direct, settings } = await prepareSchema(server, plan.schema, plan.migrate);
    const engine = new Engine(plan, driver, server, direct);
    engine.warnings.look(settings);
    return engine;
  } catch (error) {
    await server.close(0);
    throw error;
  }
}

/** Returns the numbers of the migrations that it ran. */
export async function migrate(plan: PostgresPlan): Promise<number[]> {
  const server = connect(plan, plan.pool === undefined ? await loadDriver() : undefined);
  try {
    return (await prepareSchema(server, plan.schema, true)).ran;
  } finally {
    await server.close(0);
  }
}

function connect(plan: PostgresPlan, driver: Driver | undefined): Server {
  const { schema, connectTimeoutMs, queryTimeoutMs, max } = plan;
  const pool =
    driver === undefined
      ? (plan.pool as PgPool)
      : new driver.Pool({ ...clientConfig(plan), max, min: 1, idleTimeoutMillis: IDLE_MS, allowExitOnIdle: true });
  return new Server({
    pool,
    owned: driver !== undefined,
    place: placeOf(plan),
    schema,
    connectTimeoutMs,
    queryTimeoutMs,
    max: driver === undefined ? ((pool.options as { max?: number } | undefined)?.max ?? max) : max,
  });
}

function clientConfig({ config, connectTimeoutMs }: PostgresPlan): Record<string, unknown> {
  const keepAlive = { keepAlive: true, keepAliveInitialDelayMillis: KEEPALIVE_MS };
  return { ...config, ...keepAlive, connectionTimeoutMillis: connectTimeoutMs, stream: newSocket };
}

export class Engine {
  readonly server: Server;
  readonly wake: Wake;
  readonly relays: Relays;
  readonly warnings: Warnings;
  /** True if other processes can notice a crash of this process, and this one theirs. */
  readonly hinted: boolean;
  /** The calls of a caller, in the order of their numbers. */
  readonly callOrder = new CallOrder();
  readonly detours = new Detours();
  readonly fitting = new Fitting();
  readonly joined = new Joined();
  /**
   * Sessions with a claim that got no reply. That claim may still arrive, so the next one records its number even if it finds nothing.
   */
  readonly unanswered = new Set<string>();
  /** Queues that surely exist, and whether they surely are queues with groups. */
  readonly known = new Map<string, boolean>();
  /** Queues that surely exist, and whose claims look for messages. */
  readonly related = new Set<string>();
  readonly #presence: Presence;
  readonly #listener: Listener | undefined;

  constructor(plan: PostgresPlan, driver: Driver | undefined, server: Server, direct: boolean) {
    this.server = server;
    server.tune = direct && driver !== undefined;
    server.prepare = plan.prepare ?? server.tune;
    // Channels and identifiers have different rules: a channel of letters and digits alone needs no quotes anywhere.
    const channel = `holdfast_${Buffer.from(plan.schema).toString('hex').slice(0, 48)}`;
    this.warnings = new Warnings(server.circumstance.place);
    const onTrouble = (error: HoldfastError): void => this.warnings.report(error);
    this.hinted = plan.notify && direct;
    const id = randomBytes(6).toString('hex');
    this.wake = new Wake({ server, id, channel, notify: plan.notify, listens: this.hinted, onTrouble });
    this.relays = new Relays(server, this.wake);
    this.#presence = new Presence(server);
    if (!this.hinted) return;
    this.#listener = new Listener({
      connect: () => newClient(plan, driver),
      channel,
      onMessage: (payload) => this.wake.receive(payload),
      onConnecting: async (run) => {
        await this.#presence.hold(run);
        this.warnings.look(await run(sqlOf('schema/durability')));
      },
      onConnected: () => this.wake.wakeAll(),
      onLost: () => this.#presence.lost(),
    });
  }

  /** Calls functions that may write messages, and then delivers these before it returns. */
  async sending<T>(queues: string[], work: (calls: Calls) => Promise<T>): Promise<T> {
    let hasSent = false;
    const onSent = (): void => void (hasSent = true);
    const result = await work({ call: (name, values, patienceMs) => this.server.callAndSend(name, values, onSent, patienceMs) });
    if (hasSent) await this.relays.after(...queues);
    return result;
  }

  watch(queue: string, listener: () => void, what: WatchedChange): () => void {
    void this.#listener?.start(0);
    return this.wake.watch(queue, listener, what);
  }

  /** Opens a session that names this process, with its advisory lock if the listener is connected. */
  async vouch(open: (vouching: Vouching) => Promise<void>): Promise<void> {
    if (this.#listener === undefined) return open({ presence: null, vouched: null });
    await this.#listener.start(PRESENCE_MS);
    await this.#presence.name(open);
  }

  /** Closes the engine. Ends also if the server does not reply. `calls`: resolves when the calls in flight have ended. */
  async close(calls: Promise<void>): Promise<void> {
    const end = performance.now() + CLOSE_MS;
    await within(CLOSE_MS, Promise.all([calls, this.wake.close()]));
    this.#listener?.close();
    this.#presence.close();
    await this.server.close(Math.max(0, end - performance.now()));
  }
}

function newClient(plan: PostgresPlan, driver: Driver | undefined): PgClient {
  const Client = (driver?.Client ?? plan.pool?.Client) as Driver['Client'];
  return new Client(driver === undefined ? { ...plan.pool?.options, keepAlive: true } : clientConfig(plan));
}
