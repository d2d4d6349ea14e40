// How other libraries name a Redis, as a connection of ours.
import { describe, expect, test } from 'vitest';
import { connectionFrom, type Reached } from '../../src/compat/connection.js';
import { storedName } from '../../src/job/names.js';

const client = { duplicate: () => undefined, evalsha: () => undefined };

describe('connectionFrom', () => {
  test.each<[what: string, reached: Reached, connection: unknown]>([
    ['nothing: the rest of Holdfast decides', {}, undefined],
    ['a URL', { url: 'sqlite:jobs.db' }, 'sqlite:jobs.db'],
    ['a URL as `redis`', { redis: 'redis://there:1' }, 'redis://there:1'],
    ['a URL and options', { url: 'redis://there:1', redis: { password: 'x' } }, { url: 'redis://there:1', password: 'x' }],
    ['options that take the rest for granted', { redis: { password: 'x' } }, { host: '127.0.0.1', port: 6379, password: 'x' }],
    ['options', { redis: { host: 'there', port: 1 } }, { host: 'there', port: 1 }],
    ['a URL among options', { redis: { url: 'redis://there:1' } }, { url: 'redis://there:1' }],
    ['a client', { redis: client }, client],
    ['a client among options', { redis: { client } }, client],
    ['a connection, which wins', { connection: 'memory:', url: 'redis://there', redis: { host: 'there' } }, 'memory:'],
  ])('%s', (_what, reached, connection) => {
    expect(connectionFrom(reached)).toEqual(connection);
  });

  test('passes a client on as it is, not as a copy', () => {
    expect(connectionFrom({ redis: client })).toBe(client);
    expect(connectionFrom({ redis: { client } })).toBe(client);
  });
});

describe('storedName', () => {
  test.each([
    ['mail', undefined, 'mail'],
    ['mail', '', 'mail'],
    ['mail', 'bull', 'mail'],
    ['mail:out', undefined, 'mail%3Aout'],
    ['mail', '{app}', '%7Bapp%7D/mail'],
    ['a/b', 'c', 'c/a%2Fb'],
    ['', 'c', ''],
  ])('%j under %j is %j', (name, prefix, stored) => {
    expect(storedName(name, prefix)).toBe(stored);
  });
});
