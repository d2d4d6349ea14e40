// Payloads: what is accepted comes back as JSON says it must, and nothing else is taken.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { decode, encode, encodeData } from '../../src/job/payload.js';
import { oddPayload } from './odd-values.js';
import { holds, PATIENCE } from './property.js';
import { verdictOn, watchForDamage } from './verdict.js';

watchForDamage();

test('a payload is kept as JSON keeps it, or refused', PATIENCE, async () => {
  await holds(oddPayload, 3_000, async (payload) => {
    const { value: text, refused } = await verdictOn(() => encode('It', payload));
    expect(refused?.code ?? 'INVALID_PAYLOAD').toBe('INVALID_PAYLOAD');
    if (refused !== undefined) return;
    expect(JSON.stringify(decode(text as string))).toBe(text);
    expect(text).toBe(JSON.stringify(payload));
  });
});

test('any text that a foreign writer left is read, without keys that change prototypes, or refused', PATIENCE, async () => {
  const foreign = fc.oneof(
    fc.json(),
    fc.string(),
    fc.constantFrom('', 'nul', '{"a":', '[1,]', '\ud800', '"\\ud800"', '1e999', '{"__proto__":1}'),
  );
  await holds(foreign, 3_000, async (text) => {
    const { value, refused } = await verdictOn(() => decode(text));
    expect(refused?.code ?? 'INVALID_PAYLOAD').toBe('INVALID_PAYLOAD');
    expect(JSON.stringify(value) ?? '').not.toContain('"__proto__":');
  });
});

test.each([10, 1_000, 100_000])('a payload %i deep that was made to bite is disarmed', async (depth) => {
  const text = `${'{"a":'.repeat(depth)}{"__proto__":{"polluted":1}}${'}'.repeat(depth)}`;
  const { value, refused } = await verdictOn(() => decode(text));
  expect(refused).toBeUndefined();
  let inner = value as Record<string, unknown>;
  while (inner['a'] !== undefined) inner = inner['a'] as Record<string, unknown>;
  expect(Object.keys(inner)).toEqual([]);
});

test('what is over its limit is refused before a copy of it is kept', async () => {
  const { refused } = await verdictOn(() => encodeData('big', 'x'.repeat(5_000_000), 1_000));
  expect(refused?.code).toBe('PAYLOAD_TOO_LARGE');
  // The message is for people.
  expect(refused?.message.length).toBeLessThan(300);
});
