// One connection through a FaultProxy. Each chunk meets the faults at the moment when it is delivered, so that a fault strikes what is
// already on its way.
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

export type Direction = 'requests' | 'replies';
export type Way = 'reset' | 'end';

export interface DropRule {
  /** Which requests lose their reply. It sees them as they come from the network: not always one by one, not always whole. */
  when(request: Buffer): boolean;
  times: number;
}

export interface Faults {
  swallow?: Direction | 'both';
  delay?: { ms: number; direction: Direction | 'both' };
  bytesPerSecond?: number;
  drop?: DropRule;
  cutAfter?: { draw(): number; direction: Direction | 'both'; way: Way; times: number };
}

export interface LinkParts {
  number: number;
  client: Socket;
  /** The port of the server. */
  target: number;
  proxy: {
    counts: Record<Direction | 'cut' | 'dropped' | 'swallowed', number>;
    happen(event: string, fields: Record<string, unknown>): void;
  };
  faults(): Faults;
  onClosed(): void;
}

const PIECES_PER_SECOND = 50;

const concerns = (rule: Direction | 'both' | undefined, direction: Direction): boolean => rule === 'both' || rule === direction;

export class Link {
  /** Something was swallowed: the two sides can never agree again. */
  isHarmed = false;
  #isStranded = false;
  readonly #parts: LinkParts;
  readonly #client: Socket;
  readonly #server: Socket;
  readonly #end = new AbortController();
  readonly #told = new Set<string>();
  #bytesLeft = 0;
  #dropsNextReply = false;
  #socketsClosed = 0;

  constructor(parts: LinkParts) {
    this.#parts = parts;
    this.#client = parts.client;
    this.#server = connect({ port: parts.target, host: '127.0.0.1', allowHalfOpen: true, noDelay: true });
    this.restartCount();
    this.#tell('opened');
    this.#join('requests', this.#client, this.#server);
    this.#join('replies', this.#server, this.#client);
  }

  /** The rule about cutting after so many bytes counts from here. */
  restartCount(): void {
    this.#bytesLeft = this.#parts.faults().cutAfter?.draw() ?? 0;
  }

  cut(way: Way): void {
    if (this.#isOver) return;
    this.#end.abort();
    this.#parts.proxy.counts.cut += 1;
    this.#tell('cut', { way });
    for (const socket of [this.#client, this.#server]) {
      if (way === 'reset') socket.resetAndDestroy();
      else socket.end();
    }
  }

  strand(): void {
    this.#isStranded = true;
    this.isHarmed = true;
  }

  abandon(): void {
    this.strand();
    this.#server.destroy();
  }

  destroy(): void {
    this.#end.abort();
    this.#client.destroy();
    this.#server.destroy();
  }

  get #isOver(): boolean {
    return this.#end.signal.aborted;
  }

  #join(direction: Direction, from: Socket, to: Socket): void {
    const queue: { chunk: Buffer | 'end'; due: number }[] = [];
    let isDelivering = false;
    const deliverAll = async (): Promise<void> => {
      if (isDelivering) return;
      isDelivering = true;
      for (let next = queue[0]; next !== undefined && !this.#isOver; next = queue[0]) {
        const early = next.due - performance.now();
        if (early > 0) await this.#wait(early);
        else await this.#deliver(direction, (queue.shift() as typeof next).chunk, to);
      }
      isDelivering = false;
    };
    const arrive = (chunk: Buffer | 'end'): void => {
      if (this.#isOver) return;
      if (direction === 'replies' && this.#dropsNextReply) return this.#dropReply();
      const { delay } = this.#parts.faults();
      const ms = delay !== undefined && concerns(delay.direction, direction) ? delay.ms : 0;
      queue.push({ chunk, due: performance.now() + ms });
      void deliverAll();
    };
    from.on('data', arrive);
    from.on('end', () => arrive('end'));
    from.on('error', () => {
      if (this.#isOver) return;
      if (this.#swallows(direction)) this.isHarmed = true;
      else to.resetAndDestroy();
    });
    from.on('close', () => {
      this.#socketsClosed += 1;
      if (this.#socketsClosed < 2) return;
      this.#end.abort();
      this.#tell('closed');
      this.#parts.onClosed();
    });
  }

  async #deliver(direction: Direction, chunk: Buffer | 'end', to: Socket): Promise<void> {
    const { bytesPerSecond, drop } = this.#parts.faults();
    if (this.#swallows(direction)) return this.#swallow(chunk);
    if (chunk === 'end') {
      to.end();
      return;
    }
    if (direction === 'requests' && drop !== undefined && drop.times > 0 && drop.when(chunk)) {
      drop.times -= 1;
      this.#dropsNextReply = true;
    }
    if (bytesPerSecond === undefined) return this.#write(direction, chunk, to);
    const size = Math.max(1, Math.floor(bytesPerSecond / PIECES_PER_SECOND));
    for (let at = 0; at < chunk.length && !this.#isOver; at += size) {
      const piece = chunk.subarray(at, at + size);
      await this.#wait((piece.length / bytesPerSecond) * 1_000);
      this.#write(direction, piece, to);
    }
  }

  #write(direction: Direction, chunk: Buffer, to: Socket): void {
    if (this.#isOver || !to.writable) return;
    const { cutAfter } = this.#parts.faults();
    const rule = cutAfter !== undefined && cutAfter.times > 0 && concerns(cutAfter.direction, direction) ? cutAfter : undefined;
    const passing = rule === undefined ? chunk : chunk.subarray(0, this.#bytesLeft);
    this.#parts.proxy.counts[direction] += passing.length;
    if (passing.length > 0) {
      to.write(passing);
      this.#tellOnce(direction === 'requests' ? 'first request' : 'first reply');
    }
    if (rule === undefined) return;
    this.#bytesLeft -= passing.length;
    if (this.#bytesLeft > 0) return;
    rule.times -= 1;
    this.cut(rule.way);
  }

  #swallows(direction: Direction): boolean {
    return this.#isStranded || concerns(this.#parts.faults().swallow, direction);
  }

  #swallow(chunk: Buffer | 'end'): void {
    this.isHarmed = true;
    if (chunk !== 'end') this.#parts.proxy.counts.swallowed += chunk.length;
    this.#tellOnce('swallowed');
  }

  // A server may send the head of a long reply before it has done all of the work, so its side is ended in good order and listened to
  // until it has finished. Cut there, PostgreSQL would roll back.
  #dropReply(): void {
    this.#end.abort();
    this.#parts.proxy.counts.dropped += 1;
    this.#client.resetAndDestroy();
    this.#server.once('close', () => this.#tell('reply dropped'));
    this.#server.end();
  }

  async #wait(ms: number): Promise<void> {
    await sleep(ms, undefined, { signal: this.#end.signal }).catch(() => undefined);
  }

  #tellOnce(event: string): void {
    if (this.#told.has(event)) return;
    this.#told.add(event);
    this.#tell(event);
  }

  #tell(event: string, fields: Record<string, unknown> = {}): void {
    this.#parts.proxy.happen(event, { connection: this.#parts.number, ...fields });
  }
}
