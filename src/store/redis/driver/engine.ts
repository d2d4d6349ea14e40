// Makes the parts of the Redis store and connects them with each other. Only the store (connection.ts) calls it.
import { Dialer } from './dial.js';
import { Link } from './link.js';
import type { CheckedOptions } from './options.js';
import { Presence } from '../liveness/presence.js';
import { Registry } from '../state/registry.js';
import { Relays } from '../state/relays.js';
import { type Runner, runnerOn } from './runner.js';
import { type Server, warningsOf } from './server-check.js';
import { Wake } from '../wake.js';
import { Warnings } from '../../warnings.js';

export interface Engine {
  link: Link;
  run: Runner;
  wake: Wake;
  presence: Presence;
  registry: Registry;
  relays: Relays;
  warnings: Warnings;
  server: Server | undefined;
}

/** Returns an engine that is not connected to Redis yet: `link.open` connects. */
export function makeEngine(options: CheckedOptions): Engine {
  const { prefix, commandTimeout, connectTimeout } = options;
  const dialer = new Dialer(options);
  const link = new Link({
    dialer,
    commandTimeout,
    connectTimeout,
    onUp: (server) => up(engine, server, dialer.address),
    onSilentTrouble: (error) => engine.warnings.report(error),
  });
  const run = runnerOn(link, prefix);
  const registry = new Registry(link, prefix);
  const wake = new Wake({ run, link, dialer, prefix, connectTimeout });
  const engine: Engine = {
    link,
    run,
    wake,
    presence: new Presence(run),
    registry,
    relays: new Relays({ run, registry, prefix, isCluster: () => engine.server?.cluster === true }),
    warnings: new Warnings(),
    server: undefined,
  };
  return engine;
}

function up(engine: Engine, server: Server, address: string): void {
  engine.server = server;
  engine.registry.reset();
  engine.warnings.set(warningsOf(server, address));
  void engine.presence.moveTo(server.presence);
}
