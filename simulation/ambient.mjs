// What a simulated process has for globals and for those of Node's modules that tell time, make ids or start threads.
import { EventEmitter } from 'node:events';

export function ambientOf({ loop, clock, random, pid }) {
  const timers = {
    setTimeout: (call, ms, ...args) => loop.setTimeout(call, ms, ...args),
    setInterval: (call, ms, ...args) => loop.setInterval(call, ms, ...args),
    setImmediate: (call, ...args) => loop.setImmediate(call, ...args),
  };
  const clear = (timer) => loop.clear(timer);
  const hrtime = { bigint: () => BigInt(Math.floor(clock.monotonic() * 1e6)) };
  return {
    ...timers,
    clearTimeout: clear,
    clearInterval: clear,
    clearImmediate: clear,
    Date: dateOf(clock),
    performance: { now: () => clock.monotonic() },
    process: Object.assign(new EventEmitter(), {
      pid,
      env: {},
      execArgv: [],
      versions: {},
      cwd: () => '/',
      hrtime,
      emitWarning: () => undefined,
    }),
    // What a product tells only to the console is told to nobody here.
    console: { error: () => undefined, warn: () => undefined, log: () => undefined },
    Math: Object.assign(Object.create(Math), { random: () => random.next() }),
    // A step cannot wait inside itself: whoever waits for another thread goes on at once.
    Atomics: Object.assign(Object.create(Atomics), { wait: () => 'timed-out' }),
  };
}

export function builtinsOf({ ambient, loop, ids, host, threads }) {
  const { setTimeout, setInterval, setImmediate, clearTimeout, clearInterval, clearImmediate, performance } = ambient;
  const sleep = (ms, value) => new Promise((resolve) => loop.setTimeout(resolve, ms, value));
  return {
    'node:crypto': { randomUUID: () => ids.next() },
    'node:os': { hostname: () => host },
    'node:perf_hooks': { performance },
    'node:timers': { setTimeout, setInterval, setImmediate, clearTimeout, clearInterval, clearImmediate },
    'node:timers/promises': { setTimeout: sleep },
    'node:worker_threads': threads,
  };
}

function dateOf(clock) {
  return class extends Date {
    constructor(...args) {
      super(...(args.length === 0 ? [clock.wall()] : args));
    }

    static now() {
      return Math.floor(clock.wall());
    }
  };
}
