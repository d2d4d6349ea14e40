// A TCP proxy on loopback, in front of any server, which fails on command. Faults are in force for the connections that are there and
// for new ones until heal(). What happens is noted as moments (proxy.moment('opened')), each with the number of its connection:
//   opened, first request, first reply, swallowed, cut, reply dropped, closed
import { type AddressInfo, createServer, type Server } from 'node:net';
import { MomentLog } from '../wait/moments.js';
import { type Direction, type DropRule, type Faults, Link, type Way } from './proxy-link.js';
import { seeded } from '../run/random.js';

export type { Direction, Way } from './proxy-link.js';

export interface CutAfter {
  /** How many bytes a connection carries before it is cut: so many, or drawn anew for each connection. */
  bytes: number | { from: number; to: number; seed: number };
  /** Which bytes count. */
  direction?: Direction | 'both';
  way?: Way;
  /** How many connections are cut; without it, every one until heal(). */
  times?: number;
}

export class FaultProxy extends MomentLog {
  readonly counts = { opened: 0, cut: 0, dropped: 0, requests: 0, replies: 0, swallowed: 0 };
  #target: number;
  readonly #links = new Set<Link>();
  readonly #server: Server;
  #faults: Faults = {};

  private constructor(target: number) {
    super();
    this.#target = target;
    this.#server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
      this.counts.opened += 1;
      const link: Link = new Link({
        number: this.counts.opened,
        client,
        target: this.#target,
        proxy: this,
        faults: () => this.#faults,
        onClosed: () => this.#links.delete(link),
      });
      this.#links.add(link);
    });
  }

  static async start(target: { port: number }): Promise<FaultProxy> {
    const proxy = new FaultProxy(target.port);
    await new Promise<void>((resolve, reject) => proxy.#server.once('error', reject).listen(0, '127.0.0.1', resolve));
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** The same URL, through the proxy. */
  url(direct: string): string {
    const url = new URL(direct);
    url.host = `127.0.0.1:${this.port}`;
    return url.href;
  }

  /** New connections go to this server from now on; those that are open stay where they are. */
  aim({ port }: { port: number }): void {
    this.#target = port;
  }

  /** How many connections are open at the moment. */
  get open(): number {
    return this.#links.size;
  }

  /** Now, all that are open: with RST (a crash, a firewall) or with FIN (an orderly end that nobody asked for). */
  cut(way: Way = 'reset'): void {
    for (const link of this.#links) link.cut(way);
  }

  /** Half-open: what comes is accepted and goes nowhere, and one side does not learn that the other has left. */
  swallow(direction: Direction | 'both'): void {
    this.#faults.swallow = direction;
  }

  /** Those that are open now go nowhere from here on, in silence; new ones are fine: a firewall that has forgotten them. */
  strand(): void {
    for (const link of this.#links) link.strand();
  }

  /** Those that are open now end for the server, while their clients hear nothing any more, not even an end; new ones are fine. */
  abandon(): void {
    for (const link of this.#links) link.abandon();
  }

  delay(ms: number, direction: Direction | 'both' = 'both'): void {
    this.#faults.delay = { ms, direction };
  }

  /** For each connection and direction. */
  throttle(bytesPerSecond: number): void {
    this.#faults.bytesPerSecond = bytesPerSecond;
  }

  /** The server does the work, the client loses the connection instead of getting the reply. */
  dropReplies({ when = () => true, times = 1 }: Partial<DropRule> = {}): void {
    this.#faults.drop = { when, times };
  }

  cutAfter({ bytes, direction = 'both', way = 'reset', times = Number.POSITIVE_INFINITY }: CutAfter): void {
    const random = typeof bytes === 'number' ? undefined : seeded(bytes.seed);
    const draw = (): number =>
      typeof bytes === 'number' ? bytes : bytes.from + Math.floor((random?.() ?? 0) * (bytes.to - bytes.from + 1));
    this.#faults.cutAfter = { draw, direction, way, times };
    for (const link of this.#links) link.restartCount();
  }

  /** No more faults. Connections that lost bytes are cut: no stream goes on with a hole in it. */
  heal(): void {
    this.#faults = {};
    for (const link of this.#links) if (link.isHarmed) link.cut('reset');
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    for (const link of this.#links) link.destroy();
    await closed;
  }
}
