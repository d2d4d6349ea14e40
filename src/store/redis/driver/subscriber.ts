// The connection that receives published changes. It exists while there are watchers; it is pinged, and made anew if it does not reply.
// Only speed depends on it, so its failures are not reported: wake.ts polls every second anyway.
import { drop, letProcessEnd, listenForErrors, withinDeadline } from './clients.js';
import type { Dialer } from './dial.js';
import type { Client } from './driver.js';
import type { Link } from './link.js';

export interface SubscriberOptions {
  link: Link;
  dialer: Dialer;
  connectTimeout: number;
  /** Returns all channels to subscribe to. Called at every new connection. */
  channels(): string[];
  onMessage(channel: string, message: string): void;
  /** Called after each connect: changes that were published without a connection were missed. */
  onConnected(): void;
}

const PING_MS = 2000;
const PONG_WITHIN_MS = 3000;
const REDIAL_MS = 500;

export class Subscriber {
  readonly #options: SubscriberOptions;
  readonly #timer: NodeJS.Timeout;
  #client: Client | undefined;
  #dialling = false;
  #askedAt: number | undefined;
  #redialAt = 0;
  #closed = false;

  constructor(options: SubscriberOptions) {
    this.#options = options;
    this.#timer = setInterval(() => this.#look(), REDIAL_MS).unref();
    void this.#connect();
  }

  async change(command: 'subscribe' | 'unsubscribe', channel: string): Promise<void> {
    // If this fails, the connection ends, and the next connection subscribes to all channels that are watched then.
    await this.#client?.call(command, [channel]).catch(() => undefined);
  }

  close(): void {
    this.#closed = true;
    clearInterval(this.#timer);
    if (this.#client !== undefined) drop(this.#client);
    this.#client = undefined;
  }

  #look(): void {
    const time = performance.now();
    if (this.#client === undefined) {
      if (time >= this.#redialAt) void this.#connect();
    } else if (this.#askedAt === undefined || time - this.#askedAt > PING_MS) {
      this.#askedAt = time;
      void this.#ping(this.#client);
    }
  }

  /** Pings the connection. Any reply counts, even an error. Without a reply, the connection is dropped, and the timer makes another one. */
  async #ping(client: Client): Promise<void> {
    const answered = (): Promise<unknown> => client.call('ping', []).catch(() => undefined);
    await withinDeadline(client, PONG_WITHIN_MS, answered).catch(() => undefined);
  }

  async #connect(): Promise<void> {
    const { link, dialer, connectTimeout, channels, onMessage, onConnected } = this.#options;
    if (this.#dialling || link.client === undefined) return;
    this.#dialling = true;
    this.#redialAt = performance.now() + REDIAL_MS;
    try {
      const client = dialer.beside(link.client);
      listenForErrors(client);
      letProcessEnd(client);
      client.on('message', (channel, message) => onMessage(String(channel), String(message)));
      await withinDeadline(client, connectTimeout, async () => {
        await client.connect();
        const names = channels();
        if (names.length > 0) await client.call('subscribe', names);
      });
      client.once('end', () => {
        if (this.#client === client) this.#client = undefined;
      });
      if (this.#closed || client.status === 'end') return drop(client);
      this.#client = client;
      // Subscribe to channels that were added during the first subscribe.
      const missed = channels();
      if (missed.length > 0) await client.call('subscribe', missed);
      onConnected();
    } catch {
      // The timer tries again.
    } finally {
      this.#dialling = false;
    }
  }
}
