// The connection for calls. Only this file manages it: makes it with a deadline, checks the server, drops the connection if it does not
// reply, and reconnects until the store is closed. No call waits for ever: without a reply, it rejects as retryable. Such a call may have
// been carried out, so this file never repeats it; its caller may repeat it, under the same seq.
import { asLate, type HoldfastError, toError } from '../../../errors.js';
import { retryPauseMs } from '../../../runtime/retry-pause.js';
import { drop, lastErrorOf, letProcessEnd, listenForErrors, serversOf, withinDeadline } from './clients.js';
import type { Dialer } from './dial.js';
import type { Argument, Client } from './driver.js';
import { failure, isOutOfMemory, isReadOnly, isReply, isUnknownScript, toStoreError, unavailable } from './errors.js';
import { forced, GROWING, type ScriptName, script } from './scripts.js';
import { inspectServers, type Server } from './server-check.js';
import { DEFAULT_LIMIT, perhapsTooLarge, sizeAbove, tooLarge, type ValueLimit, valueLimitOf } from './value-limit.js';

export interface LinkOptions {
  dialer: Dialer;
  commandTimeout: number;
  connectTimeout: number;
  /** Called after every connect: the first one and each reconnect. */
  onUp(server: Server): void;
  /** Called once per outage, if the connection failed and no call was under way that could report it. */
  onSilentTrouble(error: HoldfastError): void;
}

/** A flight is a call that was sent and has no reply yet. */
interface FlightKind {
  /** Reply timeout in ms. */
  patience: number;
  /** True: the timeout holds even if the connection is alive and brings other replies first. */
  strict?: boolean;
  /** True for the link's own checks of the connection: no caller sees their failure. */
  silent: boolean;
}

interface Flight extends FlightKind {
  sentAt: number;
  reject(error: Error): void;
}

const CHECK_MS = 500;
/** An idle connection is pinged every PING_MS, and must reply within PONG_WITHIN_MS. */
const PING_MS = 1000;
const PONG_WITHIN_MS = 3000;
/** How long a call waits for a connection if there is none, in ms: most outages are short. */
const OFFLINE_PATIENCE_MS = 2000;
/** The pause before the next attempt after an error that does not pass with time, such as a wrong password. */
const REFUSED_PAUSE_MS = 5000;
/** The least time between two cluster clients that are dropped because a replica has replied. */
const LEAVE_AGAIN_MS = 5000;

export class Link {
  readonly #options: LinkOptions;
  readonly #plainCall: FlightKind;
  readonly #strictCall: FlightKind;
  readonly #flights = new Set<Flight>();
  /** The number of flights that a caller waits for. The process stays alive until they have their replies. */
  #awaited = 0;
  readonly #waiters = new Set<(outcome: Client | HoldfastError) => void>();
  #client: Client | undefined;
  /** The connection that vouches for our sessions: the client itself, or one node of a cluster. */
  #anchor: Client | undefined;
  #anchoring = false;
  #connecting: Client | undefined;
  /** The reason why there is no connection. */
  #trouble: HoldfastError | undefined;
  /** This outage was reported, to a caller or through `onSilentTrouble`. */
  #hasReported = false;
  #knownAddress: string | undefined;
  #valueLimit = DEFAULT_LIMIT;
  #checks: NodeJS.Timeout | undefined;
  #checkedAt = 0;
  #usedAt = 0;
  /** The bytes that the connection had received at the last check, and the time of the last check that found new bytes. */
  #received = 0;
  #receivedAt = 0;
  #redial: NodeJS.Timeout | undefined;
  /** When a cluster client may be dropped again because a replica has replied. */
  #leaveAgainAt = 0;
  #closed = false;

  constructor(options: LinkOptions) {
    this.#options = options;
    this.#plainCall = { patience: options.commandTimeout, silent: false };
    this.#strictCall = { ...this.#plainCall, strict: true };
  }

  /** Makes the first connection. Rejects with the reason if that fails. */
  async open(): Promise<void> {
    try {
      await this.#connect(undefined);
    } catch (error) {
      throw toStoreError(error, this.#options.dialer.address);
    }
    this.#checkedAt = performance.now();
    this.#checks = setInterval(() => this.#look(), CHECK_MS).unref();
  }

  /** The current client, from which the subscriber makes its own connection. */
  get client(): Client | undefined {
    return this.#client;
  }

  run(name: ScriptName, tag: string, args: Argument[], client = this.#client): Promise<unknown> {
    if (client === undefined) return this.#reached().then((late) => this.run(name, tag, args, late));
    return sizeAbove(args, this.#valueLimit) === undefined
      ? this.#evaluate(client, name, tag, args)
      : this.#sendLarge(client, name, tag, args);
  }

  /** Sends a value above the known limit. It reads the limit again first, because an operator may have raised it since connecting. */
  async #sendLarge(client: Client, name: ScriptName, tag: string, args: Argument[]): Promise<unknown> {
    if (!this.#valueLimit.assumed)
      this.#valueLimit = (await this.#track(valueLimitOf(this.#anchor ?? client), this.#plainCall)) as ValueLimit;
    const limit = this.#valueLimit;
    const size = sizeAbove(args, limit);
    if (size === undefined) return this.#evaluate(client, name, tag, args);
    if (!limit.assumed) throw tooLarge(size, limit, this.#options.dialer.address);
    return this.#evaluate(client, name, tag, args).catch((error: HoldfastError) => {
      throw perhapsTooLarge(error, size, limit);
    });
  }

  #evaluate(client: Client, name: ScriptName, tag: string, args: Argument[]): Promise<unknown> {
    // Watchers poll every second, and lock clients call more often. If there are any, these calls also check the connection.
    const kind = this.#kindOf(name, client);
    const answer = client.evalsha(script(name).sha, 1, tag, args);
    return this.#track(answer, kind, (thrown) => evaluateAgain(thrown, client, name, tag, args));
  }

  /** Returns the timeout rules of a script. Locks expire: if a renewal waits behind large replies, a new connection is better. */
  #kindOf(name: ScriptName, client: Client): FlightKind {
    if (name === 'renew') return this.#strictCall;
    if (name === 'check-sessions') return { ...this.#question(client), strict: true };
    return name === 'watch' ? this.#question(client) : this.#plainCall;
  }

  #question({ isCluster }: Client): FlightKind {
    const { commandTimeout } = this.#options;
    return { patience: isCluster ? commandTimeout : Math.min(PONG_WITHIN_MS, commandTimeout), silent: true };
  }

  /** Sends a command whose first argument is a key. */
  async command(command: string, args: Argument[]): Promise<unknown> {
    return this.ask(this.#client ?? (await this.#reached()), command, args);
  }

  /** Sends a command that does not concern a queue to one server. */
  async ask(client: Client, command: string, args: Argument[]): Promise<unknown> {
    return this.#track(client.call(command, args), this.#plainCall);
  }

  /** Returns all connected servers: one, or the primaries of a cluster. */
  servers(): Client[] {
    return this.#client === undefined ? [] : serversOf(this.#client);
  }

  close(): void {
    this.#closed = true;
    clearInterval(this.#checks);
    clearTimeout(this.#redial);
    const error = failure('STORE_CLOSED', 'The store was closed before Redis answered.');
    for (const waiter of this.#waiters) waiter(error);
    for (const client of [this.#client, this.#connecting]) if (client !== undefined) drop(client);
    this.#client = undefined;
    for (const { reject } of this.#flights) reject(error);
  }

  async #connect(at: string | undefined): Promise<void> {
    const { dialer, connectTimeout, onUp } = this.#options;
    const client = await dialer.dial(at);
    if (this.#closed) throw failure('STORE_CLOSED', 'The store was closed before it connected.');
    this.#connecting = client;
    const { server, anchor } = await withinDeadline(client, connectTimeout, () => this.#enter(client));
    this.#connecting = undefined;
    if (server.cluster && !client.isCluster) {
      drop(client);
      await dialer.joinCluster();
      return this.#connect(undefined);
    }
    // The client may have ended, and the store may have been closed, between the last reply and this line.
    if (client.status === 'end') throw lastErrorOf(client) ?? new Error('Connection is closed.');
    if (this.#closed) {
      drop(client);
      throw failure('STORE_CLOSED', 'The store was closed while it connected.');
    }
    client.once('end', () =>
      this.#down(client, unavailable(`The connection to Redis at ${dialer.address} was lost.`, lastErrorOf(client))),
    );
    this.#client = client;
    this.#anchor = anchor;
    this.#trouble = undefined;
    this.#hasReported = false;
    this.#usedAt = performance.now();
    this.#valueLimit = server.valueLimit;
    this.#knownAddress = client.isCluster ? undefined : client.stream?.remoteAddress;
    onUp(server);
    for (const waiter of this.#waiters) waiter(client);
  }

  async #enter(client: Client): Promise<{ server: Server; anchor: Client }> {
    listenForErrors(client);
    letProcessEnd(client);
    try {
      await client.connect();
      return await inspectServers(client, this.#options.dialer.address);
    } catch (error) {
      // ioredis emits the reason in an event and rejects with 'Connection is closed.'.
      throw client.status === 'end' ? (lastErrorOf(client) ?? error) : error;
    }
  }

  /** Chooses a new anchor. A cluster client keeps working if the anchor's connection ends, so another connection must vouch for us. */
  async #anchorAnew(client: Client): Promise<void> {
    if (this.#anchoring) return;
    this.#anchoring = true;
    try {
      const { server, anchor } = await inspectServers(client, this.#options.dialer.address);
      if (this.#client !== client) return;
      this.#anchor = anchor;
      this.#options.onUp(server);
    } catch {
      // The next check tries again.
    } finally {
      this.#anchoring = false;
    }
  }

  #down(client: Client, error: HoldfastError): void {
    if (this.#client !== client) return;
    this.#client = undefined;
    this.#trouble = error;
    drop(client);
    for (const flight of this.#flights) {
      if (!flight.silent) this.#hasReported = true;
      flight.reject(error);
    }
    if (!this.#closed) this.#redialAfter(0, 1);
  }

  /**
   * Drops the connection after a replica has replied, to find the primary. In a cluster, this interrupts the calls of all slots, and the
   * next client may find the same replica: so only the first reply counts, until LEAVE_AGAIN_MS have passed.
   */
  #leaveReplica(error: HoldfastError): void {
    const client = this.#client;
    const time = performance.now();
    if (client === undefined || (client.isCluster && time < this.#leaveAgainAt)) return;
    this.#leaveAgainAt = time + LEAVE_AGAIN_MS;
    // Not the error itself: it says that nothing was written, but another node may have carried out a call whose reply is on its way.
    this.#down(
      client,
      unavailable(`The connection to Redis at ${this.#options.dialer.address} led to a replica; connecting anew.`, error),
    );
  }

  #reportOnce(error: HoldfastError): void {
    if (!this.#hasReported) this.#options.onSilentTrouble(error);
    this.#hasReported = true;
  }

  #redialAfter(pauseMs: number, attempt: number): void {
    clearTimeout(this.#redial);
    // A call that waits for the connection keeps the process alive with its own timer.
    this.#redial = setTimeout(() => void this.#tryAgain(attempt), pauseMs).unref();
  }

  async #tryAgain(attempt: number): Promise<void> {
    try {
      // First try the last known address: a DNS lookup needs a thread of the libuv pool, which may be busy for seconds.
      await this.#connect(attempt === 1 ? this.#knownAddress : undefined);
    } catch (thrown) {
      if (this.#closed) return;
      const refusal = toStoreError(thrown, this.#options.dialer.address);
      // An unknown host is retryable here: the store was connected before, so the name resolves again once the name server is back.
      const error = refusal.code === 'STORE_UNAVAILABLE' ? unavailable(refusal.message, refusal.cause) : refusal;
      this.#trouble = error;
      const pause = retryPauseMs(attempt) * (0.75 + Math.random() / 2);
      this.#redialAfter(error.retryable || isReadOnly(error) ? pause : REFUSED_PAUSE_MS, attempt + 1);
      if (!error.retryable) for (const waiter of this.#waiters) waiter(error);
      this.#reportOnce(error);
    }
  }

  /** Waits for the next connection, at most OFFLINE_PATIENCE_MS. */
  #reached(): Promise<Client> {
    const trouble = this.#trouble;
    if (this.#closed) return Promise.reject(failure('STORE_CLOSED', 'The store was closed before the call.'));
    if (trouble !== undefined && !trouble.retryable) return Promise.reject(trouble);
    return new Promise((resolve, reject) => {
      const settle = (outcome: Client | HoldfastError): void => {
        clearTimeout(timer);
        this.#waiters.delete(settle);
        if (outcome instanceof Error) reject(outcome);
        else resolve(outcome);
      };
      const giveUp = (): void =>
        settle(this.#trouble ?? unavailable(`Redis at ${this.#options.dialer.address} is not connected.`));
      const timer = setTimeout(giveUp, Math.min(OFFLINE_PATIENCE_MS, this.#options.commandTimeout));
      this.#waiters.add(settle);
    });
  }

  /**
   * Waits for a reply. Rejects with a HoldfastError, also if the connection is dropped. `again` may send the call once more in another way,
   * but only if the server has surely not carried it out; it returns undefined if there is no such way.
   */
  #track(
    answer: Promise<unknown>,
    kind: FlightKind,
    again?: (thrown: unknown) => Promise<unknown> | undefined,
  ): Promise<unknown> {
    return new Promise((resolve, reject) => {
      // Named fields: a spread took 1 µs of each call.
      const { patience, silent, strict = false } = kind;
      const flight: Flight = { patience, silent, strict, sentAt: performance.now(), reject };
      this.#usedAt = flight.sentAt;
      this.#takeOff(flight);
      const succeed = (reply: unknown): void => {
        this.#land(flight);
        resolve(reply);
      };
      const fail = (thrown: unknown): void => {
        this.#land(flight);
        const error = toStoreError(thrown, this.#options.dialer.address);
        // A broken connection refuses calls at once, before its `end` event. If a caller repeats without a pause, the event loop would
        // never get to that event: so reject in a later turn.
        if (isReply(thrown)) reject(error);
        else setImmediate(reject, error);
        if (isReadOnly(error)) this.#leaveReplica(error);
      };
      answer.then(succeed, (thrown: unknown) => {
        const other = again?.(thrown);
        if (other === undefined) fail(thrown);
        else other.then(succeed, fail);
      });
    });
  }

  #takeOff(flight: Flight): void {
    this.#flights.add(flight);
    if (!flight.silent && this.#awaited++ === 0) this.#checks?.ref();
  }

  #land(flight: Flight): void {
    this.#flights.delete(flight);
    if (!flight.silent && --this.#awaited === 0) this.#checks?.unref();
  }

  /** Records whether bytes have arrived. Replies come in order: while a large one arrives, those behind it are late on a live server. */
  #listen({ stream }: Client, time: number): void {
    const received = stream?.bytesRead ?? 0;
    if (received !== this.#received) this.#receivedAt = time;
    this.#received = received;
  }

  #isOwed(oldest: Flight, time: number): boolean {
    if (time - Math.max(oldest.sentAt, this.#receivedAt) > oldest.patience) return true;
    if (time - oldest.sentAt <= oldest.patience) return false;
    for (const { strict, sentAt, patience } of this.#flights) if (strict === true && time - sentAt > patience) return true;
    return false;
  }

  /** Checks the connection: drops it if a reply is overdue, and pings it if it is idle. */
  #look(): void {
    const time = performance.now();
    const late = time - this.#checkedAt > 3 * CHECK_MS;
    this.#checkedAt = time;
    // If the event loop was blocked, replies may be in the socket, unread.
    if (late || this.#client === undefined) return;
    const client = this.#client;
    if (this.#anchor?.status === 'end') void this.#anchorAnew(client);
    this.#listen(client, time);
    const [oldest] = this.#flights;
    // In a cluster, ioredis drops the connections one by one after the timeout. This check is for cases that ioredis does not detect.
    const extra = client.isCluster ? 2 * CHECK_MS : 0;
    if (oldest !== undefined && this.#isOwed(oldest, time - extra)) {
      const silence = Math.round(time - oldest.sentAt);
      const { address } = this.#options.dialer;
      const error = asLate(unavailable(`Redis at ${address} has not answered for ${silence} ms; connecting anew.`));
      this.#down(client, error);
      this.#reportOnce(error);
    } else if (oldest === undefined && time - this.#usedAt > PING_MS) {
      for (const server of this.servers()) this.#track(server.call('ping', []), this.#question(client)).catch(() => undefined);
    }
  }
}

/** Runs a script in another way, if the error means that the server has surely not carried it out; else returns undefined. */
function evaluateAgain(
  thrown: unknown,
  client: Client,
  name: ScriptName,
  tag: string,
  args: Argument[],
): Promise<unknown> | undefined {
  // The server does not know the hash: send the text, which also stores the script for later calls.
  if (isUnknownScript(thrown)) {
    const taught = client.eval(script(name).text, 1, tag, args);
    return taught.catch((error: unknown) => evaluateAgain(error, client, name, tag, args) ?? Promise.reject(toError(error)));
  }
  return isOutOfMemory(thrown) && !GROWING.has(name) ? client.eval(forced(name), 1, tag, args) : undefined;
}
