import { afterAll, beforeAll, test } from 'vitest';
import { shared } from '../support/servers/shared.js';
import { agreeWithMemory } from './check.js';
import { keepFamilies } from './families.js';
import { type OpenContender, redisContender } from './redis-contender.js';

let contender: OpenContender;
beforeAll(async () => {
  contender = await redisContender(await shared('redis-cluster'), 'cluster');
});
afterAll(() => contender?.close());

test('redis cluster does what the memory store does, whatever the sequence of verbs', { timeout: 3_600_000 }, async () => {
  await agreeWithMemory(async () => contender, { runs: 50 });
});

test('redis cluster keeps families as the model does, whatever the sequence of verbs', {
  timeout: 3_600_000,
}, async () => {
  await keepFamilies(async () => contender, { runs: 1, steps: 60 });
});
