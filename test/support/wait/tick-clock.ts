// A faked clock in sinon's way, without its package: Date and timeouts of the process stand still until `tick` moves them. Each replaced
// function carries the clock, with the genuine one under `_name`.

interface Timer {
  due: number;
  call: () => void;
}

export class TickClock {
  #now = 0;
  #number = 0;
  readonly #timers = new Map<number, Timer>();
  #genuine: { Date: DateConstructor; setTimeout: typeof setTimeout; clearTimeout: typeof clearTimeout } | undefined;

  install(now: number): void {
    this.#now = now;
    const { Date: GenuineDate, setTimeout: start, clearTimeout: stop } = globalThis;
    this.#genuine = { Date: GenuineDate, setTimeout: start, clearTimeout: stop };
    const read = (): number => this.#now;
    class FakeDate extends GenuineDate {
      constructor(...args: [] | [number]) {
        super(...((args.length === 0 ? [read()] : args) as [number]));
      }
      static override now(): number {
        return read();
      }
    }
    const clock = { _setTimeout: start, _clearTimeout: stop, _Date: GenuineDate };
    const set = (call: () => void, ms = 0): number => {
      this.#number += 1;
      this.#timers.set(this.#number, { due: this.#now + ms, call });
      return this.#number;
    };
    const clear = (timer: number): void => void this.#timers.delete(timer);
    Object.assign(globalThis, {
      Date: FakeDate,
      setTimeout: Object.assign(set, { clock }),
      clearTimeout: Object.assign(clear, { clock }),
    });
  }

  /** Moves the time, and calls what falls due on the way. */
  tick(ms: number): void {
    const end = this.#now + ms;
    for (;;) {
      const [next] = [...this.#timers].filter(([, { due }]) => due <= end).toSorted(([, a], [, b]) => a.due - b.due);
      if (next === undefined) break;
      const [number, { due, call }] = next;
      this.#timers.delete(number);
      this.#now = Math.max(this.#now, due);
      call();
    }
    this.#now = end;
  }

  uninstall(): void {
    if (this.#genuine !== undefined) Object.assign(globalThis, this.#genuine);
    this.#timers.clear();
  }
}
