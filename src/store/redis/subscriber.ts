// The connection that hears of changes: made when somebody watches, pinged, and made anew when it does not answer. Nothing depends
// on it but speed, so its troubles are nobody's error: wake.ts looks for itself every second.
import { drop, letProcessEnd, listenForErrors, withinDeadline } from './clients.js';
import type { Dialer } from './dial.js';
import type { Client } from './driver.js';
import type { Link } from './link.js';

export interface SubscriberOptions {
  link: Link;
  dialer: Dialer;
  connectTimeout: number;
  /** All that is to be subscribed to, asked at every new connection. */
  channels(): string[];
  onMessage(channel: string, message: string): void;
  /** What came while there was no connection was missed. */
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
    // When it fails, the connection ends, and the next one subscribes to what is watched then.
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

  /** Any answer will do. */
  async #ping(client: Client): Promise<void> {
    await withinDeadline(client, PONG_WITHIN_MS, () => client.call('ping', []).catch(() => undefined));
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
      // Channels that were added while it subscribed.
      const missed = channels();
      if (missed.length > 0) await client.call('subscribe', missed);
      onConnected();
    } catch {
      // The next look tries again.
    } finally {
      this.#dialling = false;
    }
  }
}
