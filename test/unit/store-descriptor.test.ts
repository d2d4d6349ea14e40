// The parts of a connection that can be sent to the lock thread, and how they arrive there.
import { expect, test } from 'vitest';
import { plainCopy, withBuffers } from '../../src/store/descriptor.js';

test('hands bytes, URLs and plain values to the thread unchanged', () => {
  const given = {
    ca: [Buffer.from('one'), 'two'],
    deep: { url: new URL('redis://h/1'), none: undefined, no: null, n: 1.5, yes: true },
  };
  const arrived = withBuffers(structuredClone(plainCopy(given, 'connection')));
  expect(arrived).toEqual({ ca: [Buffer.from('one'), 'two'], deep: { url: 'redis://h/1', no: null, n: 1.5, yes: true } });
  expect((arrived as { ca: Buffer[] }).ca[0]).toBeInstanceOf(Buffer);
});

test('hands over only the bytes of a small Buffer, not its whole pool', () => {
  const { ca } = plainCopy({ ca: Buffer.from('one') }, 'connection');
  expect(ca.buffer.byteLength).toBe(3);
});

test.each([
  ['a function', () => 1],
  ['a symbol', Symbol('s')],
  ['a bigint', 1n],
  ['an instance of Map', new Map()],
])('%s is named by its path', (what, value) => {
  expect(() => plainCopy({ tls: { list: [0, { value }] } }, 'connection')).toThrow(`connection.tls.list[1].value is ${what},`);
});
