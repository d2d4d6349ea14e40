// Keys of a Redis server that somebody has edited, deleted or made.
import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { tagOf } from '../../src/store/redis/driver/runner.js';
import { shared } from '../support/servers/shared.js';
import { type Damage, survive } from './survival.js';
import { watchForDamage } from './verdict.js';
import { paced } from '../support/wait/pace.js';

watchForDamage();

const prefix = `hostile-${randomUUID()}`;
let url: string;
let client: Redis;
beforeAll(async () => {
  url = await shared('redis');
  client = new Redis(url);
});
afterAll(() => client?.disconnect());

type Edit = (key: (suffix: string) => string, jobId: string) => Promise<unknown>;

function damage(harms: Damage['harms'], title: string, edit: Edit, more: Partial<Damage> = {}): Damage {
  return { title, harms, hit: ({ queue, jobId }) => edit((suffix) => `${tagOf(prefix, queue)}:${suffix}`, jobId), ...more };
}

const texts = (hash: string, values: string[]): Damage[] =>
  values.map((value) =>
    damage('job', `${hash} of the job is ${JSON.stringify(value)}`, (key, id) => client.hset(key(hash), id, value)),
  );
const GARBAGE = [
  '',
  'garbage',
  '\0\0\0',
  '1,2,3',
  'w,,,,,,,,,,,,',
  'z,1,1,1,1,1,1,1,1,1,1,1,1\0t\0b',
  '{"a":1}',
  'a,1,,0,,,0,0,0,0,0,0,0\0ghost:1\0',
];
const TYPES = ['meta', 'run', 'job', 'wait', 'delayed', 'completed', 'events', 'sessions', 'slots', 'turns', 'named'];

const DAMAGES: Damage[] = [
  ...texts('run', GARBAGE),
  ...texts('job', GARBAGE),
  damage('job', 'data that is no JSON', (key, id) => client.hset(key('job'), id, '1\0victim\0{}\0no JSON'), {
    reason: /not JSON/,
  }),
  damage('job', 'options that are no JSON', (key, id) => client.hset(key('job'), id, '1\0victim\0no JSON\0{}'), {
    reason: /not JSON/,
  }),
  damage('job', 'data with a key that changes prototypes', (key, id) =>
    client.hset(key('job'), id, '1\0victim\0{}\0{"__proto__":{"polluted":1}}'),
  ),
  damage('job', 'no run of the job', (key, id) => client.hdel(key('run'), id)),
  damage('job', 'no text of the job', (key, id) => client.hdel(key('job'), id)),
  damage('job', 'no job at all, only its place', (key, id) => client.multi().hdel(key('run'), id).hdel(key('job'), id).exec()),
  damage('job', 'a place for a job that never was', (key) => client.zadd(key('wait'), -1, 'ghost', 0, '')),
  damage('job', 'a place that is no number', (key, id) => client.zadd(key('wait'), '-inf', id)),
  damage('job', 'no place', (key, id) => client.zrem(key('wait'), id)),
  damage('job', 'two places', (key, id) => client.zadd(key('completed'), 1, id)),
  damage('job', 'keys of somebody else in the namespace', (key) =>
    client.mset(key(''), 'x', key('unknown'), 'x', key('s:ghost'), 'x', key('log:ghost'), 'x'),
  ),
  damage('job', 'a log that is no list', (key, id) => client.set(key(`log:${id}`), 'x')),
  damage('job', 'sides of jobs that never were', (key) => client.hset(key('reason'), 'ghost', 'x')),
  ...['stack', 'progress', 'reason', 'value'].map((hash) =>
    damage('job', `${hash} that is no JSON`, (key, id) => client.hset(key(hash), id, 'no JSON'), { worn: true }),
  ),
  damage('queue', 'counters that are too few', (key) => client.set(key('meta'), 'short')),
  damage('queue', 'counters that are garbage', (key) => client.set(key('meta'), '\xff'.repeat(400))),
  damage('queue', 'an event that is garbage', (key) => client.xadd(key('events'), '999999999-1', 'e', 'garbage')),
  damage('queue', 'an event without a text', (key) => client.xadd(key('events'), '999999999-1', 'other', 'X\0id')),
  damage('queue', 'a session that is none', (key) => client.zadd(key('sessions'), 1, 'ghost')),
  damage('queue', 'the death of a session that is none', (key) => client.zadd(key('reaped'), 1, 'ghost')),
  ...TYPES.map((suffix) =>
    damage('queue', `${suffix} of another type`, (key) => client.multi().del(key(suffix)).lpush(key(suffix), 'x').exec()),
  ),
];

describe.concurrent('redis: others go on with', () => {
  for (const one of DAMAGES) test(`${one.title}`, { timeout: paced(60_000) }, () => survive(`${url}?prefix=${prefix}`, one));
});
