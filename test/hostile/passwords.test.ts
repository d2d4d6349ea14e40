// No password gets into an error: not into its message, its fields, its causes or its stack, however odd the connection is.
import { inspect } from 'node:util';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Connection, openStore } from '../../src/store/open.js';
import { Worker } from '../../src/worker/worker.js';
import { newServer } from '../engines/redis/support.js';
import { holds, PATIENCE } from './property.js';

/** A number may be taken for a port, a word for a host, a database or a parameter. */
const PIECES = ['31337', 'hunter2'];

/** Characters that end a part of a URL, and those that must be encoded. */
const ODD = ['/', '@', '?', '#', ':', '%', '&', '=', ' ', '\\', '[', '%2', 'ü', '//', '@@', ''];

const password = fc
  .tuple(fc.constantFrom(...ODD), fc.constantFrom(...PIECES), fc.constantFrom(...ODD), fc.constantFrom(...PIECES))
  .map((parts) => parts.join(''));

// Nothing listens on port 1.
const HOST = '127.0.0.1:1';
type Form = (scheme: string, secret: string) => Connection;
const FORMS: Form[] = [
  (scheme, secret) => `${scheme}://user:${secret}@${HOST}`,
  (scheme, secret) => `${scheme}://user:${secret}@${HOST}/db?max=2`,
  (scheme, secret) => `${scheme}://:${secret}@${HOST}/0`,
  (scheme, secret) => `${scheme}://user:${secret}@127.0.0.1:99999/0`,
  (scheme, secret) => `${scheme}://user:${encodeURIComponent(secret)}@127.0.0.1:port/0`,
  (scheme, secret) => `${scheme}://${HOST}/0?password=${secret}`,
  (scheme, secret) => `${scheme}://${HOST}?user=me&password=${secret}`,
  // Without slashes it names a file.
  (scheme, secret) => `${scheme === 'sqlite' ? 'sql' : scheme}:user:${secret}@${HOST}`,
  (_, secret) => `user:${secret}@${HOST}`,
  (_, secret) => `//user:${secret}@${HOST}`,
  (scheme, secret) => ({ url: `${scheme}://user:${secret}@${HOST}`, max: 2 }),
  (scheme, secret) => ({ cluster: [`${scheme}://user:${secret}@${HOST}`] }),
  (scheme, secret) => ({ cluster: [`${scheme}://user:${encodeURIComponent(secret)}@127.0.0.1:99999`] }),
  (_, secret) => ({ host: '127.0.0.1', port: 99_999, password: secret }),
  (_, secret) => ({ host: '127.0.0.1', port: 1, username: 'user', password: secret }),
];
const SCHEMES = ['redis', 'rediss', 'valkey', 'postgres', 'postgresql', 'sqlite', 'mysql', 'amqp', 'Redis', 'redi s', 'http'];

/** The errors that a store and a worker on it give. */
async function errorsOf(connection: Connection): Promise<unknown[]> {
  const errors: unknown[] = [];
  const note = (error: unknown): void => void errors.push(error);
  await openStore(connection).then((store) => store.close(), note);
  try {
    const worker = new Worker('q', () => undefined, { connection, useDedicatedLockThread: false });
    const told = new Promise<unknown>((resolve) => worker.on('error', resolve));
    if (errors.length > 0) note(await told);
    await worker.close();
  } catch (thrown) {
    note(thrown);
  }
  return errors;
}

function everythingIn(error: unknown): string {
  return inspect(error, { depth: Number.POSITIVE_INFINITY, showHidden: true, maxStringLength: null, maxArrayLength: null });
}

describe('an error of a connection', () => {
  test('holds nothing of its password, whatever is wrong with it', PATIENCE, async () => {
    await holds(
      fc.record({ form: fc.constantFrom(...FORMS.keys()), scheme: fc.constantFrom(...SCHEMES), secret: password }),
      600,
      async ({ form, scheme, secret }) => {
        const connection = (FORMS[form] as Form)(scheme, secret);
        const errors = await errorsOf(connection);
        expect(errors.length, inspect(connection)).toBeGreaterThan(0);
        for (const error of errors) {
          expect(error, inspect(connection)).toMatchObject({ name: 'HoldfastError' });
          for (const piece of PIECES) expect(everythingIn(error), inspect(connection)).not.toContain(piece);
        }
      },
    );
  });

  test('that a Redis refuses holds nothing of it either', async () => {
    const server = await newServer({ settings: { requirepass: 'right' } });
    const refused = await errorsOf({ host: '127.0.0.1', port: server.port, username: 'default', password: 'hunter2' });
    const lost = await errorsOf({ cluster: [{ host: '127.0.0.1', port: server.port }], password: 'hunter2' });
    for (const error of [...refused, ...lost]) expect(everythingIn(error)).not.toContain('hunter2');
    expect(refused).not.toHaveLength(0);
  });
});

describe('a password with odd characters', () => {
  test.each(['/', '?', '#', '%'])('is refused with the way to write it when %s is not encoded', async (odd) => {
    for (const scheme of ['redis', 'postgres']) {
      const [error] = await errorsOf(`${scheme}://user:1${odd}2@${HOST}/0`);
      expect(error).toMatchObject({ code: 'INVALID_CONNECTION', retryable: false });
      expect((error as Error).message).toMatch(/%2F.*%3F.*%23.*%40.*%25/);
    }
  });

  test('is taken as it is when it is encoded, or holds an @', async () => {
    for (const secret of ['a@b', encodeURIComponent('/?#%@: ')]) {
      for (const scheme of ['redis', 'postgres']) {
        const [error] = await errorsOf(`${scheme}://user:${secret}@${HOST}/0`);
        expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true });
      }
    }
  });
});
