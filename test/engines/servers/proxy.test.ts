// The proxy with which other tests break connections: each fault, seen from both sides of it, in front of a server that says back
// what it is told.
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { seeded } from '../../support/run/random.js';
import { FaultProxy } from '../../support/servers/proxy.js';
import { until } from '../../support/wait/until.js';

let echo: Server;
let proxy: FaultProxy;
/** What the server was told, for each connection, and how it ended there. */
let served: { heard: string; end?: 'fin' | 'reset'; socket: Socket }[];
const clients: Client[] = [];

beforeEach(async () => {
  served = [];
  echo = createServer((socket) => {
    const one: (typeof served)[number] = { heard: '', socket };
    served.push(one);
    socket.on('data', (chunk) => {
      one.heard += chunk.toString();
      socket.write(chunk);
    });
    socket.on('end', () => {
      one.end = 'fin';
    });
    socket.on('error', () => {
      one.end = 'reset';
    });
  });
  await new Promise<void>((resolve) => echo.listen(0, '127.0.0.1', resolve));
  proxy = await FaultProxy.start({ port: (echo.address() as AddressInfo).port });
});

afterEach(async () => {
  for (const { socket } of clients.splice(0)) socket.destroy();
  await proxy.close();
  for (const { socket } of served) socket.destroy();
  await new Promise((resolve) => echo.close(resolve));
});

class Client {
  heard = '';
  end: 'fin' | 'reset' | undefined;
  readonly socket: Socket;

  constructor() {
    this.socket = connect({ port: proxy.port, host: '127.0.0.1', noDelay: true });
    this.socket.on('data', (chunk) => {
      this.heard += chunk.toString();
    });
    this.socket.on('end', () => {
      this.end = 'fin';
    });
    this.socket.on('error', () => {
      this.end = 'reset';
    });
    clients.push(this);
  }

  say(text: string): void {
    this.socket.write(text);
  }

  hears(text: string): Promise<unknown> {
    return until(`the client hears ${text}`, () => this.heard === text);
  }

  ends(): Promise<'fin' | 'reset'> {
    return until('the client loses the connection', () => this.end);
  }
}

async function talking(): Promise<Client> {
  const client = new Client();
  client.say('hello ');
  await client.hears('hello ');
  return client;
}

describe('the fault proxy without a fault', () => {
  test('passes bytes in both directions, and counts them', async () => {
    const client = await talking();
    expect(served[0]?.heard).toBe('hello ');
    expect(proxy.counts).toEqual({ opened: 1, cut: 0, dropped: 0, requests: 6, replies: 6, swallowed: 0 });
    expect(client.end).toBeUndefined();
  });

  test('passes an end, and records the moments of the connection in order', async () => {
    const client = await talking();
    client.socket.end();
    expect(await client.ends()).toBe('fin');
    await proxy.moment('closed');
    expect(served[0]?.end).toBe('fin');
    expect(proxy.moments.map(({ event }) => event)).toEqual(['opened', 'first request', 'first reply', 'closed']);
    expect(proxy.open).toBe(0);
  });

  test.each(['client', 'server'] as const)('passes a reset by the %s to the other side', async (side) => {
    const client = await talking();
    (side === 'client' ? client.socket : (served[0] as { socket: Socket }).socket).resetAndDestroy();
    if (side === 'server') expect(await client.ends()).toBe('reset');
    else expect(await until('the server loses it', () => served[0]?.end)).toBe('reset');
  });

  test('passes megabytes', async () => {
    const client = await talking();
    const much = 'x'.repeat(3_000_000);
    client.say(much);
    await until('all is back', () => client.heard.length === much.length + 6);
  });

  test('resets the client when there is no server', async () => {
    await new Promise((resolve) => echo.close(resolve));
    expect(await new Client().ends()).toBe('reset');
  });

  test('returns the URL through itself', () => {
    expect(proxy.url('postgres://me:secret@example.test:1/db')).toBe(`postgres://me:secret@127.0.0.1:${proxy.port}/db`);
  });
});

describe('a cut of the fault proxy', () => {
  test.each([
    ['reset', 'reset'],
    ['end', 'fin'],
  ] as const)('%s: both sides lose the connection, the next one works', async (way, seen) => {
    const client = await talking();
    proxy.cut(way);
    expect(await client.ends()).toBe(seen);
    expect(await until('the server loses it', () => served[0]?.end)).toBe(seen);
    expect(proxy.counts.cut).toBe(1);
    await talking();
    expect(proxy.counts).toMatchObject({ opened: 2, cut: 1 });
  });
});

describe('a half-open connection of the fault proxy', () => {
  test('drops requests silently, and is cut by healing if it lost bytes', async () => {
    const client = await talking();
    proxy.swallow('requests');
    client.say('lost');
    await proxy.moment('swallowed');
    (served[0] as { socket: Socket }).socket.write('alive');
    await client.hears('hello alive');
    expect(served[0]).toMatchObject({ heard: 'hello ' });
    expect(proxy.counts.swallowed).toBe(4);
    expect(client.end).toBeUndefined();
    proxy.heal();
    expect(await client.ends()).toBe('reset');
    await talking();
  });

  test('drops replies: the server does the work, and the client waits', async () => {
    const client = await talking();
    proxy.swallow('replies');
    client.say('done');
    await proxy.moment('swallowed');
    expect(served[0]?.heard).toBe('hello done');
    expect(client).toMatchObject({ heard: 'hello ', end: undefined });
  });

  test('that is stranded drops bytes silently, while new connections work', async () => {
    const client = await talking();
    proxy.strand();
    client.say('lost');
    await proxy.moment('swallowed');
    (served[0] as { socket: Socket }).socket.write('lost too');
    await until('both to be swallowed', () => proxy.counts.swallowed === 'lost'.length + 'lost too'.length);
    expect(served[0]?.heard).toBe('hello ');
    expect(client).toMatchObject({ heard: 'hello ', end: undefined });
    await talking();
  });

  test('that is abandoned ends for the server, not for the client, while new connections work', async () => {
    const client = await talking();
    proxy.abandon();
    await until('the server to see the end', () => served[0]?.end);
    client.say('lost');
    await proxy.moment('swallowed');
    expect(client).toMatchObject({ heard: 'hello ', end: undefined });
    await talking();
    proxy.heal();
    expect(await client.ends()).toBe('reset');
  });

  test('stays at its server when new ones are aimed at another', async () => {
    const client = await talking();
    const other = createServer((socket) => socket.end('another'));
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    proxy.aim({ port: (other.address() as AddressInfo).port });
    await new Client().hears('another');
    client.say('again');
    await client.hears('hello again');
    await new Promise((resolve) => other.close(resolve));
  });

  test('is accepted and gets no reply when it is new', async () => {
    proxy.swallow('both');
    const client = new Client();
    client.say('anybody?');
    await proxy.moment('swallowed');
    expect(client).toMatchObject({ heard: '', end: undefined });
    expect(client.socket.readyState).toBe('open');
    expect(served[0]?.heard ?? '').toBe('');
  });

  test.each(['resetAndDestroy', 'end'] as const)('hides from the server that the client has left (%s)', async (leave) => {
    const client = await talking();
    proxy.swallow('both');
    client.socket[leave]();
    // The server is heard by the proxy alone: by then it would have been told.
    (served[0] as { socket: Socket }).socket.write('still there?');
    await proxy.moment('swallowed');
    expect(served[0]?.end).toBeUndefined();
    expect(proxy.open).toBe(1);
    proxy.heal();
    expect(await until('the server is told', () => served[0]?.end)).toBe('reset');
  });

  test('goes on after healing if it was silent meanwhile', async () => {
    const client = await talking();
    proxy.swallow('both');
    proxy.heal();
    client.say('again');
    await client.hears('hello again');
  });
});

describe('delay and throttle of the fault proxy', () => {
  test('delay each direction, and chunks side by side, not one after the other', async () => {
    const client = await talking();
    proxy.delay(100);
    const start = performance.now();
    for (let n = 0; n < 20; n++) {
      client.say('x');
      await sleep(5);
    }
    await client.hears(`hello ${'x'.repeat(20)}`);
    const took = performance.now() - start;
    expect(took).toBeGreaterThan(20 * 5 + 2 * 100 - 10);
    expect(took).toBeLessThan(20 * 100);
  });

  test('delay one direction alone', async () => {
    const client = await talking();
    proxy.delay(60_000, 'replies');
    client.say('now');
    await until('the server hears at once', () => served[0]?.heard === 'hello now');
    expect(client.heard).toBe('hello ');
  });

  test('do not let an end overtake late bytes', async () => {
    proxy.delay(50);
    const client = new Client();
    client.socket.end('last words');
    await client.ends();
    expect(client.heard).toBe('last words');
  });

  test('pass as many bytes a second as set, and all of them', async () => {
    const client = await talking();
    proxy.throttle(10_000);
    const start = performance.now();
    client.say('x'.repeat(2_000));
    await until('all is back', () => client.heard.length === 2_006);
    expect(performance.now() - start).toBeGreaterThan(195);
  });
});

describe('dropped replies of the fault proxy', () => {
  test('end the connection before the reply, once, after the server did the work', async () => {
    const client = await talking();
    proxy.dropReplies();
    client.say('work');
    expect(await client.ends()).toBe('reset');
    await proxy.moment('reply dropped');
    expect(served[0]).toMatchObject({ heard: 'hello work', end: 'fin' });
    expect(client.heard).toBe('hello ');
    expect(proxy.counts).toMatchObject({ dropped: 1, cut: 0 });
    await talking();
  });

  test('concern only the requests that match', async () => {
    const client = await talking();
    proxy.dropReplies({ when: (request) => request.includes('claim') });
    client.say('renew ');
    await client.hears('hello renew ');
    client.say('claim');
    expect(await client.ends()).toBe('reset');
    expect(client.heard).toBe('hello renew ');
  });

  test('let a server finish that replies before it has finished', async () => {
    let finished = false;
    echo.removeAllListeners('connection');
    echo.on('connection', (socket) => {
      served.push({ heard: '', socket });
      socket.once('data', () => {
        socket.write('head of the reply');
        setTimeout(() => {
          finished = socket.writable && socket.write('its tail');
        }, 100);
        setTimeout(() => socket.end(), 150);
      });
    });
    (echo as unknown as { allowHalfOpen: boolean }).allowHalfOpen = true;
    proxy.dropReplies();
    const client = new Client();
    client.say('work');
    await proxy.moment('reply dropped');
    expect(finished).toBe(true);
    expect(client.heard).toBe('');
  });
});

describe('a cut of the fault proxy after a number of bytes', () => {
  test('falls in the middle of a request', async () => {
    proxy.cutAfter({ bytes: 4, direction: 'requests', times: 1 });
    const client = new Client();
    client.say('half of it');
    expect(await client.ends()).toBe('reset');
    await until('the server loses it', () => served[0]?.end);
    expect(served[0]?.heard).toBe('half');
    await talking();
    expect(proxy.counts.cut).toBe(1);
  });

  test('falls in the middle of a reply, counted from the call on an open connection', async () => {
    const client = await talking();
    proxy.cutAfter({ bytes: 4, direction: 'replies', way: 'end' });
    client.say('half of it');
    expect(await client.ends()).toBe('fin');
    expect(client.heard).toBe('hello half');
    expect(served[0]?.heard).toBe('hello half of it');
  });

  test('falls at the same bytes for the same seed', async () => {
    const cuts = async (seed: number): Promise<number[]> => {
      served = [];
      proxy.cutAfter({ bytes: { from: 1, to: 200, seed }, direction: 'requests' });
      for (let n = 0; n < 5; n++) {
        const client = new Client();
        client.say('x'.repeat(300));
        await client.ends();
        await until('the server loses it', () => served[n]?.end);
      }
      return served.map(({ heard }) => heard.length);
    };
    const first = await cuts(7);
    expect(await cuts(7)).toEqual(first);
    expect(await cuts(8)).not.toEqual(first);
    expect(new Set(first).size).toBeGreaterThan(1);
    expect(Math.min(...first)).toBeGreaterThanOrEqual(1);
    expect(Math.max(...first)).toBeLessThanOrEqual(200);
  });

  test('is ended by healing', async () => {
    proxy.cutAfter({ bytes: 1 });
    proxy.heal();
    await talking();
    expect(proxy.counts.cut).toBe(0);
  });
});

test('uses random numbers that are spread over 0 to 1', () => {
  const random = seeded(1);
  const drawn = Array.from({ length: 1_000 }, random);
  expect(Math.min(...drawn)).toBeGreaterThanOrEqual(0);
  expect(Math.max(...drawn)).toBeLessThan(1);
  expect(drawn.reduce((sum, number) => sum + number) / 1_000).toBeCloseTo(0.5, 1);
});
