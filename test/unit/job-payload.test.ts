import { runInNewContext } from 'node:vm';
import { describe, expect, test } from 'vitest';
import { decode, encode, encodeData, encodeResult } from '../../src/job/payload.js';

const cycle: Record<string, unknown> = { name: 'a' };
cycle['list'] = [1, { back: cycle }];
const deep: unknown[] = [];
for (let inner = deep, depth = 0; depth < 100_000; depth++) {
  const next: unknown[] = [];
  inner.push(next);
  inner = next;
}
function returnThis(this: unknown): unknown {
  return this;
}
const ownProto: unknown = JSON.parse('{"a":{"__proto__":{"admin":true}}}');

describe('a payload is refused when JSON would lose a part of it', () => {
  test.each([
    ['a cycle', cycle, 'it.list[1].back points back'],
    ['a BigInt', { amounts: [1n] }, 'it.amounts[0] is a BigInt'],
    ['a function', { user: { send: () => 1 } }, 'it.user.send is a function'],
    ['a function alone', () => 1, 'it is a function'],
    ['a symbol', { kind: Symbol('x') }, 'it.kind is a symbol'],
    ['an own __proto__', ownProto, 'it.a.__proto__ is a key'],
    ['a Map', { index: new Map([[1, 2]]) }, 'it.index is a Map'],
    ['a Set', [new Set([1])], 'it[0] is a Set'],
    ['a promise that nobody awaited', { user: Promise.resolve(1) }, 'it.user is a Promise'],
    ['an Error', { cause: new TypeError('no') }, 'it.cause is an Error, of which JSON would lose the message'],
    ['an Error that shows fields', [Object.assign(new Error('no'), { code: 'ENOENT' })], 'it[0] is an Error'],
    ['an Error of another realm', { cause: runInNewContext('new Error("no")') }, 'it.cause is an Error'],
    ['a Map of another realm', { index: runInNewContext('new Map([[1, 2]])') }, 'it.index is a Map'],
    ['a RegExp', { filter: /a+/ }, 'it.filter is a RegExp'],
    ['NaN', { ratio: Number.NaN }, 'it.ratio is NaN, which JSON would turn into null'],
    ['NaN alone', Number.NaN, 'it is NaN'],
    ['NaN in a list', [1, [Number.NaN]], 'it[1][0] is NaN'],
    ['Infinity', { limit: Number.POSITIVE_INFINITY }, 'it.limit is Infinity'],
    ['-Infinity', { limit: Number.NEGATIVE_INFINITY }, 'it.limit is -Infinity'],
    ['an invalid Date', { at: [new Date(Number.NaN)] }, 'it.at[0] is an invalid Date, which JSON would turn into null'],
    ['an invalid Date of another realm', { at: runInNewContext('new Date(NaN)') }, 'it.at is an invalid Date'],
    ['NaN in a Number object', { ratio: Object(Number.NaN) as unknown }, 'it.ratio is NaN, which JSON would turn into null'],
    ['a toJSON that returns NaN', { ratio: { toJSON: () => Number.NaN } }, 'it.ratio is NaN'],
    ['a toJSON that returns NaN inside', { a: { toJSON: () => ({ b: [Number.NaN] }) } }, 'it.a.b[0] is NaN'],
    ['an ArrayBuffer', { bytes: new ArrayBuffer(8) }, 'it.bytes is an ArrayBuffer'],
    ['URLSearchParams', { query: new URLSearchParams('a=1') }, 'it.query is a URLSearchParams'],
    ['endless nesting', deep, 'nested too deeply'],
    ['a toJSON that throws', { toJSON: () => JSON.parse('{') }, 'it cannot be written as JSON'],
    ['undefined', undefined, 'it is undefined'],
  ])('%s', (_name, value, message) => {
    expect(() => encode('Data of job "x"', value)).toThrow(expect.objectContaining({ code: 'INVALID_PAYLOAD' }));
    expect(() => encode('Data of job "x"', value)).toThrow(/^Data of job "x": it/);
    expect(() => encode('x', value)).toThrow(message);
  });

  test('with the path to the first of several faults', () => {
    expect(() => encode('x', { fine: [{ ok: 1 }], bad: { worse: [0, () => 1] }, also: 1n })).toThrow(
      'it.bad.worse[1] is a function',
    );
  });
});

test.each([
  [{ a: 1, b: [true, null, 'x'] }, '{"a":1,"b":[true,null,"x"]}'],
  [{ gone: undefined, kept: 1 }, '{"kept":1}'],
  [[undefined, null], '[null,null]'],
  [{ to: new URL('https://example.com/a') }, '{"to":"https://example.com/a"}'],
  [{ bytes: Buffer.from('a') }, '{"bytes":{"type":"Buffer","data":[97]}}'],
  [{ boxed: Object(5) as unknown, bytes: new Uint8Array([7]) }, '{"boxed":5,"bytes":{"0":7}}'],
  [{ own: new (class Empty {})() }, '{"own":{}}'],
  [{ at: new Date(0) }, '{"at":"1970-01-01T00:00:00.000Z"}'],
  [{ none: { toJSON: () => null }, gone: { toJSON: () => undefined } }, '{"none":null}'],
  [{ self: { a: 1, toJSON: returnThis } }, '{"self":{"a":1}}'],
  [{ shown: { toJSON: () => ({ call: () => 1, index: new Map() }) } }, '{"shown":{"index":{}}}'],
  [Object.create(null), '{}'],
  [
    new (class Point {
      x = 1;
      norm() {
        return 1;
      }
    })(),
    '{"x":1}',
  ],
  [null, 'null'],
  [0, '0'],
  ['', '""'],
  ['\0\ud800', '"\\u0000\\ud800"'],
  [{ same: cycle['name'], twice: [deep.length, deep.length] }, '{"same":"a","twice":[1,1]}'],
])('%j is kept', (value, text) => {
  expect(encode('x', value)).toBe(text);
});

test('the same object at two places is no cycle', () => {
  const shared = { a: 1 };
  expect(encode('x', [shared, { shared }])).toBe('[{"a":1},{"shared":{"a":1}}]');
});

test('objects nested a thousand deep are kept', () => {
  const text = `${'['.repeat(1000)}${']'.repeat(1000)}`;
  expect(encode('x', JSON.parse(text))).toBe(text);
});

describe('a result is kept as JSON keeps it, because its work has been done', () => {
  test.each([
    [{ ratio: Number.NaN, limit: Number.POSITIVE_INFINITY }, '{"ratio":null,"limit":null}'],
    [{ at: new Date(Number.NaN), ratio: Object(Number.NaN) as unknown }, '{"at":null,"ratio":null}'],
    [[{ status: 'rejected', reason: new Error('no') }], '[{"status":"rejected","reason":{}}]'],
    [{ filter: /a+/ }, '{"filter":{}}'],
  ])('%j', (value, text) => {
    expect(encodeResult('x', value)).toBe(text);
  });

  test.each([
    ['a Map', { index: new Map() }, 'it.index is a Map'],
    ['a function', { send: () => 1 }, 'it.send is a function'],
    ['a BigInt', { amount: 1n }, 'it.amount is a BigInt'],
  ])('unless it holds %s', (_name, value, message) => {
    expect(() => encodeResult('x', value)).toThrow(message);
  });
});

test('no data means {}, no result means null', () => {
  expect(encodeData('x', undefined)).toBe('{}');
  expect(encodeData('x', null)).toBe('null');
  expect(encodeResult('x', undefined)).toBe('null');
});

describe('sizeLimit', () => {
  test('counts bytes of JSON, not characters', () => {
    expect(encodeData('x', 'é', 4)).toBe('"é"');
    expect(() => encodeData('x', 'é', 3)).toThrow(expect.objectContaining({ code: 'PAYLOAD_TOO_LARGE' }));
    expect(() => encodeData('x', 'abc', 4)).toThrow('5 bytes');
  });

  test('accepts 0 as a limit', () => {
    expect(() => encodeData('x', 1, 0)).toThrow(expect.objectContaining({ code: 'PAYLOAD_TOO_LARGE' }));
  });
});

describe('decoding a payload', () => {
  test.each([
    '{"__proto__":{"polluted":1},"a":1}',
    '{"\\u005f_proto__":{"polluted":1},"a":1}',
    '{"\\u005F_proto_\\u005f":{"polluted":1},"a":1}',
  ])('drops the key that changes prototypes: %s', (text) => {
    const value = decode(text) as object;
    expect(Object.keys(value)).toEqual(['a']);
    expect(Object.assign({}, value)).not.toHaveProperty('polluted');
  });

  test('drops __proto__ at any depth, and keeps values that only mention it', () => {
    const value = decode('{"list":[{"__proto__":{"polluted":1},"text":"__proto__"}]}');
    expect(JSON.stringify(value)).toBe('{"list":[{"text":"__proto__"}]}');
    expect(Object.getPrototypeOf((value as { list: object[] }).list[0])).toBe(Object.prototype);
  });

  test('rejects text that is not JSON with a code of its own', () => {
    expect(() => decode('{')).toThrow(expect.objectContaining({ code: 'INVALID_PAYLOAD' }));
  });
});
