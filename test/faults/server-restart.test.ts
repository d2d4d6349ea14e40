// The server goes away under load and comes back with what it had acknowledged: killed, killed and away for a while, restarted in good
// order. Nobody has to do anything: workers and producers go on by themselves, and say once what happened.
import { Client } from 'pg';
import { describe, expect, test } from 'vitest';
import { Crew, SERVER_ENGINES, type ServerEngine, serverOf } from '../support/processes/crew.js';
import { sleep, until } from '../support/wait/until.js';
import { askRedis } from '../support/servers/redis.js';
import type { TestServer } from '../support/servers/server.js';
import { paced } from '../support/wait/pace.js';

const LOAD = 50;

type Outages = Record<string, (server: TestServer) => Promise<void>>;

const OUTAGES: Outages = {
  killed: async (server) => {
    await server.kill();
    await server.restart();
  },
  'killed and away for a while': async (server) => {
    await server.kill();
    await sleep(3000);
    await server.restart();
  },
  'restarted in good order': (server) => server.restart(),
};

/** Ends the server's first process in another way, and starts it again when that and its children are gone. */
const ended = (signal: NodeJS.Signals) => async (server: TestServer) => {
  process.kill(server.pid, signal);
  await until('it to end', () => !server.isRunning);
  // Children that have not noticed yet keep the memory that they share with it.
  await until(
    'it to start',
    () =>
      server
        .restart()
        .then(() => true)
        .catch(() => false),
    20_000,
  );
};

const OF_ENGINE: Record<ServerEngine, Outages> = {
  redis: {},
  postgres: { 'shut down at once': ended('SIGQUIT'), 'the postmaster alone killed': ended('SIGKILL') },
};

/** Makes a server forget jobs that it has acknowledged when it is killed. */
const CARELESS: Record<ServerEngine, (server: TestServer) => Promise<void>> = {
  redis: async ({ port }) => void (await askRedis(port, 'CONFIG SET appendonly no')),
  postgres: async ({ url }) => {
    const client = new Client({ connectionString: url });
    await client.connect();
    await client.query('ALTER TABLE holdfast.jobs SET UNLOGGED');
    await client.end();
  },
};

describe.each(SERVER_ENGINES)('a server restart of %s', (engine) => {
  test('is survived by all: each outage is reported once, and nothing acknowledged is lost or done twice', {
    timeout: paced(90_000),
  }, async () => {
    const server = await serverOf(engine);
    const crew = await Crew.on(server.url);
    const { url: connection } = server;
    for (const _ of [1, 2]) {
      crew.worker({ connection, options: { concurrency: 8 } });
      crew.producer({ connection });
    }
    await Promise.all(crew.members.map((member) => member.ready()));
    for (const [name, happen] of Object.entries({ ...OUTAGES, ...OF_ENGINE[engine] })) {
      await crew.more('finished', LOAD);
      const before = crew.members.map((member) => member.errors().length);
      await happen(server);
      await crew.more('finished', LOAD, 15_000);
      crew.members.forEach((member, index) => {
        const told = member.errors().slice(before[index]);
        // The store's own connection and that of the lock thread may each tell; and a server that starts says something else than one that is gone.
        expect(told.length, `${name}, told by a ${member.role}: ${told.join('\n')}`).toBeLessThanOrEqual(4);
        for (const error of told) expect(error).toMatch(/^STORE_UNAVAILABLE: .*(Redis|PostgreSQL)/);
      });
    }
    for (const member of crew.members) expect(member.errors().length, member.role).toBeGreaterThanOrEqual(2);
    const { complaints, acknowledged } = await crew.finish();
    expect(complaints).toEqual([]);
    expect(crew.count('stalled')).toBe(0);
    expect(crew.count('aborted')).toBe(0);
    expect(acknowledged).toBeGreaterThan(LOAD);
  });

  test('(N) a server that acknowledges what is not safe is caught losing it', { timeout: paced(60_000) }, async () => {
    const server = await serverOf(engine);
    const crew = await Crew.on(server.url);
    await CARELESS[engine](server);
    crew.producer({ connection: server.url, paceMs: 1 });
    await crew.more('added', LOAD);
    await server.kill();
    await server.restart();
    crew.worker({ connection: server.url, options: { concurrency: 8 } });
    await crew.more('finished', 5, 15_000);
    // Counters that still know of the lost jobs never come to zero.
    const { complaints } = await crew.finish(2_000);
    expect(complaints.some((complaint) => complaint.endsWith('was acknowledged and never completed'))).toBe(true);
  });
});
