// Makes the parts of a store and connects them with each other. Only the store (connection.ts) calls it.
import { Dialer } from '../driver/dial.js';
import { Link } from '../driver/link.js';
import type { CheckedOptions } from '../driver/options.js';
import { Presence } from '../liveness/presence.js';
import { Registry } from './registry.js';
import { Relays } from './relays.js';
import { type Runner, runnerOn } from '../driver/runner.js';
import { type Server, warningsOf } from '../driver/server.js';
import { Wake } from '../wake.js';
import { Warnings } from '../../warnings.js';

export interface Parts {
  link: Link;
  run: Runner;
  wake: Wake;
  presence: Presence;
  registry: Registry;
  relays: Relays;
  warnings: Warnings;
  server: Server | undefined;
}

/** Returns parts that are not connected to Redis yet: `link.open` connects. */
export function makeParts(options: CheckedOptions): Parts {
  const { prefix, commandTimeout, connectTimeout } = options;
  const dialer = new Dialer(options);
  const link = new Link({
    dialer,
    commandTimeout,
    connectTimeout,
    onUp: (server) => up(parts, server, dialer.address),
    onSilentTrouble: (error) => parts.warnings.report(error),
  });
  const run = runnerOn(link, prefix);
  const registry = new Registry(link, prefix);
  const wake = new Wake({ run, link, dialer, prefix, connectTimeout });
  const parts: Parts = {
    link,
    run,
    wake,
    presence: new Presence(run),
    registry,
    relays: new Relays({ run, registry, prefix, isCluster: () => parts.server?.cluster === true }),
    warnings: new Warnings(),
    server: undefined,
  };
  return parts;
}

function up(parts: Parts, server: Server, address: string): void {
  parts.server = server;
  parts.registry.reset();
  parts.warnings.set(warningsOf(server, address));
  void parts.presence.moveTo(server.presence);
}
