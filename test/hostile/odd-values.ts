// What hostile or careless callers pass: texts that break out of quoting, keys and patterns, numbers that are none, objects that fight back.
import fc from 'fast-check';

const TEXTS = [
  ...['', ' ', '\t', '\n', '\r\n', '\0', 'a\0b', '\x1b[2J', '\x7f'],
  ...["'", '"', '`', '\\', "\\'", "''", '$1', '$$', '$body$', '${1}', '?', ':a', '@a', '%', '%s', '%n', '_'],
  ...[
    "'; DROP TABLE jobs; --",
    "' OR '1'='1",
    '"; DELETE FROM jobs; --',
    "');SELECT pg_sleep(9);--",
    "x' UNION SELECT 1--",
    '/*',
    '--',
  ],
  ...["]] redis.call('FLUSHALL') --[[", '\r\nFLUSHALL\r\n', 'return 1', '%z', '^(.*)$', '%d+', '%'],
  ...[
    '{',
    '}',
    '{}',
    '{a}',
    '{other}:b',
    'a{b}c',
    '}{',
    '{{x}}',
    ':',
    '::',
    'a:b',
    ':1',
    's:1',
    'meta',
    'run',
    'wait',
    '*',
    '?',
    '[a-z]',
    'a*',
  ],
  ...[
    '__proto__',
    'constructor',
    'prototype',
    'toString',
    'hasOwnProperty',
    'null',
    'undefined',
    'NaN',
    'true',
    '0',
    '-1',
    '1e3',
    '007',
  ],
  ...[
    '\ud800',
    '\udc00',
    'a\ud83d',
    '\udc00\ud800',
    '😀',
    'é',
    'e\u0301',
    '\u202eabc',
    '\u200f',
    '\u200b',
    '\ufeff',
    '\ufffd',
    '\uffff',
    'ı',
    'ß',
    'K',
  ],
  ...['../..', '/etc/passwd', 'a/b', 'CON', '.', '..', 'file://x', 'a\\b', ',', ',,', '=', '=a', '~', '!', 'a,b', '1,2', '-'],
];

export const oddText: fc.Arbitrary<string> = fc.oneof(
  { weight: 5, arbitrary: fc.constantFrom(...TEXTS) },
  { weight: 2, arbitrary: fc.tuple(fc.constantFrom(...TEXTS), fc.constantFrom(...TEXTS)).map(([a, b]) => a + b) },
  { weight: 2, arbitrary: fc.string({ unit: 'binary', maxLength: 20 }) },
  {
    weight: 1,
    arbitrary: fc.string({ unit: fc.integer({ min: 0, max: 0xffff }).map((code) => String.fromCharCode(code)), maxLength: 8 }),
  },
  {
    weight: 1,
    arbitrary: fc
      .tuple(fc.constantFrom(...TEXTS, 'a'), fc.constantFrom(199, 200, 201, 500, 501, 5_000))
      .map(([text, length]) => text.repeat(length).slice(0, length)),
  },
);

export const oddNumber: fc.Arbitrary<number> = fc.oneof(
  fc.constantFrom(0, -0, 1, -1, 0.5, 1.5, -0.1, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY),
  fc.constantFrom(
    2 ** 31 - 1,
    2 ** 31,
    2 ** 32,
    2 ** 53 - 1,
    2 ** 53,
    -(2 ** 53),
    1e21,
    1e308,
    5e-324,
    Number.EPSILON,
    2 ** 21,
    2 ** 21 + 1,
  ),
  fc.integer(),
  fc.double(),
);

/** Fresh ones, for some of them remember. */
const fighters: (() => unknown)[] = [
  () => Symbol('odd'),
  () => 1n,
  () => () => 1,
  () => new Date(Number.NaN),
  () => new Date(0),
  () => new Map([[1, 2]]),
  () => new Set([1]),
  () => new WeakMap(),
  () => Promise.resolve(1),
  () => new Error('odd'),
  () => /odd/g,
  () => new Uint8Array([1, 2]),
  () => Buffer.from('odd'),
  () => new URL('http://x/'),
  () => new Proxy({}, {}),
  () => new Proxy({}, { get: throwing, ownKeys: throwing, has: throwing, getOwnPropertyDescriptor: throwing }),
  () => Object.create(null),
  () => Object.freeze({ a: 1 }),
  () => Object.create({ inherited: 1, delay: Number.NaN }),
  () => JSON.parse('{"__proto__":{"polluted":true,"delay":-1,"priority":"high"}}'),
  () => JSON.parse('{"constructor":{"prototype":{"polluted":true}}}'),
  () => ({ toJSON: throwing }),
  () => ({ toJSON: () => undefined }),
  () => ({ toJSON: 'no function' }),
  () => ({ delay: 5, toJSON: () => ({ polluted: 1 }) }),
  () => ({
    get toJSON(): never {
      return throwing();
    },
  }),
  () => ({
    get bomb(): never {
      return throwing();
    },
  }),
  () => ({ valueOf: throwing, toString: throwing, [Symbol.toPrimitive]: throwing }),
  () => Object.assign([], { 3: 1 }),
  () => Object.assign([1], { extra: 1 }),
  () =>
    new (class Odd {
      #secret = 1;
      visible = 2;
      get secret() {
        return this.#secret;
      }
    })(),
  () => nested(500),
  () => nested(50_000),
  () => cycle(),
  () => globalThis,
];

/** Stands for one of them: fast-check looks into what it makes, and some would throw. `revive` puts them in their places. */
class Fighter {
  constructor(readonly number: number) {}

  make(): unknown {
    return fighters[this.number]?.();
  }
}

const fighter: fc.Arbitrary<unknown> = fc.nat(fighters.length - 1).map((number) => new Fighter(number));

/** The value itself, with everything in it that fights back. */
export function revive(value: unknown): unknown {
  if (value instanceof Fighter) return value.make();
  if (Array.isArray(value)) return value.map(revive);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, revive(inner)]));
}

export const oddValue: fc.Arbitrary<unknown> = fc.oneof(
  { weight: 2, arbitrary: oddText },
  { weight: 2, arbitrary: oddNumber },
  { weight: 3, arbitrary: fighter },
  { weight: 1, arbitrary: fc.constantFrom(null, undefined, true, false, {}, []) },
);

/** Plain data with odd keys and texts, and now and then something that JSON cannot carry. */
export const oddPayload: fc.Arbitrary<unknown> = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, depthSize: 'small' },
    oddText,
    oddNumber,
    fc.constantFrom(null, true, undefined),
    tie('list'),
    tie('object'),
    fighter,
  ),
  list: fc.array(tie('value'), { maxLength: 4 }),
  object: fc.dictionary(
    fc.oneof(
      oddText.filter((key) => key !== '__proto__'),
      fc.constantFrom('a', 'toJSON', 'constructor'),
    ),
    tie('value'),
    { maxKeys: 4 },
  ),
})).value;

/** What the caller's own getters throw. */
export class FightsBack extends Error {}

function throwing(): never {
  throw new FightsBack('it fights back');
}

function nested(depth: number): unknown {
  let value: unknown = 0;
  for (let level = 0; level < depth; level += 1) value = level % 2 === 0 ? [value] : { value };
  return value;
}

function cycle(): unknown {
  const self: Record<string, unknown> = { a: [] };
  (self['a'] as unknown[]).push({ self });
  return self;
}
