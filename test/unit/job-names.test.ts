import { describe, expect, test } from 'vitest';
import { checkJobId, checkJobName, checkQueueName, queueNames, queueNamesOf } from '../../src/job/names.js';

const NOBODYS_NAME = [
  '',
  'x'.repeat(201),
  'a\0b',
  'a\nb',
  '\u007f',
  '\ud800',
  'half \udc00',
  5,
  null,
  undefined,
  {},
  [],
  Symbol.iterator,
  5n,
  Number.NaN,
];

describe('invalid names', () => {
  test.each(NOBODYS_NAME)('queue %s', (name) => {
    expect(() => checkQueueName(name)).toThrow(expect.objectContaining({ code: 'INVALID_QUEUE_NAME' }));
  });
  test.each(NOBODYS_NAME)('job %s', (name) => {
    expect(() => checkJobName(name)).toThrow(expect.objectContaining({ code: 'INVALID_JOB_NAME' }));
  });
  test.each([...NOBODYS_NAME, '0', '42', '007'])('job id %s', (id) => {
    expect(() => checkJobId(id)).toThrow(expect.objectContaining({ code: 'INVALID_JOB_ID' }));
  });
  test.each(['a:b', ':'])('queue %s, because a colon ends a prefix', (name) => {
    expect(() => checkQueueName(name)).toThrow(expect.objectContaining({ code: 'INVALID_QUEUE_NAME' }));
  });
});

test.each(['x', 'x'.repeat(200), 'Grüße', '日本', '😀', 'a b', '__proto__', "it's; DROP TABLE jobs"])('%s is a name', (name) => {
  expect(checkQueueName(name)).toBe(name);
  expect(checkJobName(name)).toBe(name);
  expect(checkJobId(name)).toBe(name);
});

test.each(['{a}', 'a{b', '{tenant}/mail', '100%'])('%s is the name of a queue, and is read back from the store', (name) => {
  for (const prefix of [undefined, 'app', '{app}']) {
    const { stored } = queueNames(name, prefix);
    expect(stored).not.toMatch(/[:{}]/);
    if (prefix !== undefined || !name.includes('/'))
      expect(queueNamesOf(stored)).toMatchObject({ name, prefix: prefix ?? 'bull' });
  }
});

test.each(['order:17', '42a', '-1', '1.5', '1e3'])('%s is a job id', (id) => {
  expect(checkJobId(id)).toBe(id);
});
