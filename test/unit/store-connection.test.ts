import { afterEach, expect, test, vi } from 'vitest';
import { HoldfastError } from '../../src/errors.js';
import { planConnection } from '../../src/store/connection.js';

afterEach(() => void vi.unstubAllEnvs());

function refusal(connection: unknown): string {
  try {
    planConnection(connection);
  } catch (error) {
    if (error instanceof HoldfastError && error.code === 'INVALID_CONNECTION') return error.message;
    throw error;
  }
  return 'accepted';
}

test.each([
  ['sqlte:x.db', 'sqlte', 'sqlite'],
  ['SQLite:x.db', 'SQLite', 'sqlite'],
  ['postgress://localhost', 'postgress', 'postgres'],
  ['redi://localhost', 'redi', 'redis'],
  ['memry:', 'memry', 'memory'],
])('a connection %s is refused with the scheme that was meant', (url, scheme, meant) => {
  expect(refusal(url)).toContain(`has the scheme ${scheme}:, which is not known: did you mean ${meant}:?`);
});

test('a scheme that resembles none is named only before //', () => {
  expect(refusal('mysql://localhost')).toContain('has the scheme mysql:, which is not known.');
  for (const text of ['hunter2:x@host', 'hunter2', 'hunter2@host:6379']) {
    expect(refusal(text)).toContain('no scheme that is known');
    expect(refusal(text)).not.toContain('hunter2');
  }
});

test.each(['memory:?x=1', 'memory:tests?x=1', 'sync:?x=1', 'sqlite:x.db?x=1'])('%s is refused for its parameter', (url) => {
  expect(refusal(url)).toMatch(/^The connection has (a parameter|parameters)/);
});

test.each(['memory:', 'memory:tests', 'sync:', 'sqlite:x.db?synchronous=normal'])('%s is accepted', (url) => {
  expect(refusal(url)).toBe('accepted');
});

test.each([{}, { db: 1 }, { password: 'secret' }, { maxRetriesPerRequest: null, tls: {} }])(
  '%j is Redis on localhost, as in BullMQ',
  (options) => {
    expect(planConnection(options)).toMatchObject({ engine: 'redis', options });
  },
);

test.each([[{ user: 'me', database: 'jobs' }], [[]], [new Map()], [{ query: () => undefined }]])(
  '%j names no store',
  (options) => {
    expect(refusal(options)).toContain('The connection options name no store.');
  },
);

test.each([
  ['hots', 'host'],
  ['prot', 'port'],
  ['pth', 'path'],
])('the option %s is refused with the one that was meant, %s', (misspelt, meant) => {
  expect(refusal({ [misspelt]: 'x' })).toContain(`The connection option ${misspelt} is not known: did you mean ${meant}?`);
});

test.each([
  ['', 'It is empty.'],
  ['sqlte:x.db', 'did you mean sqlite:?'],
  ['localhost:6379', 'no scheme that is known'],
])('the environment variable HOLDFAST_URL=%s is named as what is wrong', (url, fault) => {
  vi.stubEnv('HOLDFAST_URL', url);
  expect(refusal(undefined)).toMatch(/^The environment variable HOLDFAST_URL names no store: /);
  expect(refusal(undefined)).toContain(fault);
});
