// A server whose TLS certificate cannot be verified: the error says why and which option helps, and with that option it works.
import { chownSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { HoldfastError } from '../../src/errors.js';
import { type Connection, openStore } from '../../src/store/open.js';
import { makeCertificates } from '../support/servers/certificates.js';
import { freePort } from '../support/servers/free-port.js';
import { startPostgres, userOf } from '../support/servers/postgres.js';
import { startRedis } from '../support/servers/redis.js';
import { paced } from '../support/wait/pace.js';

const LIMIT_MS = paced(30_000);

interface Place {
  /** Without settings of TLS, and with these. */
  connection(tls?: object): Connection;
  close(): Promise<void>;
}

const folder = mkdtempSync(join(tmpdir(), 'holdfast-certificates-'));
const at = (name: string): string => join(folder, name);

const SERVERS: Record<'redis' | 'postgres', () => Promise<Place>> = {
  redis: async () => {
    const port = await freePort();
    const server = await startRedis({
      settings: {
        'tls-port': `${port}`,
        'tls-cert-file': at('server.pem'),
        'tls-key-file': at('server.key'),
        'tls-auth-clients': 'no',
      },
    });
    const connection: Place['connection'] = (tls) => ({
      url: `rediss://127.0.0.1:${port}`,
      ...(tls === undefined ? {} : { tls }),
    });
    return { connection, close: () => server.close() };
  },
  postgres: async () => {
    const user = userOf();
    if (user !== undefined) chownSync(at('server.key'), user.uid, user.gid);
    const settings = { ssl: 'on', ssl_cert_file: at('server.pem'), ssl_key_file: at('server.key') };
    const server = await startPostgres({ settings });
    return { connection: (tls) => ({ url: server.url, ssl: tls ?? true }), close: () => server.close() };
  },
};

beforeAll(() => makeCertificates(folder));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe.each(['redis', 'postgres'] as const)('the certificate of a %s server', (engine) => {
  let place: Place;
  beforeAll(async () => {
    place = await SERVERS[engine]();
  }, LIMIT_MS);
  afterAll(() => place.close());

  async function refusal(tls?: object): Promise<HoldfastError> {
    return openStore(place.connection(tls)).then(
      (store) => store.close().then(() => expect.fail('it opened')),
      (error: HoldfastError) => error,
    );
  }

  const option = engine === 'redis' ? 'tls' : 'ssl';

  test('is refused when an unknown authority signed it, with the option that helps', async () => {
    const error = await refusal();
    expect(error).toMatchObject({ code: 'STORE_UNTRUSTED', retryable: false, store: engine });
    expect(error.message).toContain(`${option}: { ca: readFileSync('ca.pem') }`);
    expect(error.message).toContain('NODE_EXTRA_CA_CERTS');
    expect(error.message).toContain(`${option}: { rejectUnauthorized: false }`);
  });

  test('is refused when it was made for another name, with the option that helps', async () => {
    const ca = readFileSync(at('ca.pem'), 'utf8');
    const error = await refusal({ ca, servername: 'elsewhere.internal' });
    expect(error).toMatchObject({ code: 'STORE_UNTRUSTED', retryable: false, store: engine });
    expect(error.message).toContain(`${option}: { servername }`);
  });

  test.each([
    ['ca', () => ({ ca: readFileSync(at('ca.pem'), 'utf8') })],
    ['servername', () => ({ ca: readFileSync(at('ca.pem'), 'utf8'), servername: 'jobs.internal' })],
    ['rejectUnauthorized: false', () => ({ rejectUnauthorized: false })],
  ])('is taken with %s', async (_, tls) => {
    const store = await openStore(place.connection(tls()));
    onTestFinished(() => store.close());
    expect(await store.status('q')).toMatchObject({ paused: false });
  });
});
