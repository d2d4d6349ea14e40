// Handlers in a sandbox that write foreign bytes into the channel to their worker, or close it. They harm their own job at most.
import { PassThrough } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { Channel } from '../../src/sandbox/channel.js';
import { sandboxScene, written } from '../support/scenes/sandbox.js';

const BROKEN = { code: 'SANDBOX_DIED', message: expect.stringContaining('bytes into its channel') as string };

describe('a handler in a process', () => {
  test.each([
    ['a line that is not JSON', { bytes: 'not json\n', stay: true }],
    ['half a message before a call', { bytes: '{"kind":"done","run":1,"value":"', call: true, stay: true }],
    ['half a message before its end', { bytes: '{"kind":' }],
    ['bytes that are no text', { bytes: '\x00\xff\xfe\x80\n\x00', stay: true }],
    ['brackets without end', { bytes: `${'['.repeat(60_000)}\n`, stay: true }],
    ['empty lines', { bytes: '\n\n\n', stay: true }],
  ])('that writes %s into the channel fails, and its neighbours complete', async (_title, data) => {
    const { worker } = await sandboxScene('memory');
    const { run, errors } = worker('processes', { concurrency: 2 });
    const [foreign, ...echoes] = await Promise.all([run('bytes', data), run('echo', 1), run('echo', 2)]);
    expect(foreign).toMatchObject(BROKEN);
    expect([...echoes, await run('echo', 3), errors]).toEqual([1, 2, 3, []]);
  });

  test('that closes the channel and goes on fails, and its process ends', async () => {
    const { worker } = await sandboxScene('memory');
    const { run, worker: own } = worker('processes');
    expect(await run('cut')).toMatchObject({ code: 'SANDBOX_DIED' });
    expect(Object.keys(own.childPool?.retained ?? {})).toEqual([]);
    expect(await run('echo', 1)).toBe(1);
  });

  test("has no channel of Node's", async () => {
    const { run } = (await sandboxScene('memory')).worker('processes');
    expect(await run('send')).toMatchObject({ message: expect.stringContaining('process.send') });
    expect(await run('echo', 1)).toBe(1);
  });
});

describe('a handler in a thread', () => {
  test('that sends foreign messages completes', async () => {
    const { run } = (await sandboxScene('memory')).worker('threads');
    expect(await run('bytes', { bytes: 'not json\n', call: true })).toBe('ended');
  });

  test('that closes its port to the outside is still told of a cancel', async () => {
    const { worker, queue, file } = await sandboxScene('memory');
    const { worker: own, end, run } = worker('threads', { sandbox: { graceMs: 10 } });
    const { id } = await queue.add('cut', { file: file('cut') });
    await written(file('cut'), 'began');
    own.cancelJob(id);
    expect(await end(id)).toMatchObject({ code: 'SANDBOX_KILLED' });
    expect(await run('echo', 1)).toBe(1);
  });
});

describe('a channel', () => {
  function channel(): { pipe: PassThrough; seen: unknown[] } {
    const pipe = new PassThrough();
    const seen: unknown[] = [];
    void new Channel(pipe, {
      message: (message) => seen.push(message),
      closed: () => seen.push('closed'),
      broken: ({ message }) => seen.push(message),
    });
    return { pipe, seen };
  }

  const flushed = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

  test('takes lines in any pieces', async () => {
    const { pipe, seen } = channel();
    const text = '{"a":"ä\\n"}\n[2]\n"three"\n';
    for (const byte of Buffer.from(text)) pipe.write(Buffer.from([byte]));
    pipe.write(Buffer.from(text));
    pipe.end();
    await flushed();
    expect(seen).toEqual([{ a: 'ä\n' }, [2], 'three', { a: 'ä\n' }, [2], 'three', 'closed']);
  });

  test('breaks on a line without end, and takes nothing after it', async () => {
    const { pipe, seen } = channel();
    const mebibyte = Buffer.alloc(2 ** 20, 'x');
    for (let n = 0; n <= 256 && !pipe.destroyed; n += 1) {
      pipe.write(mebibyte);
      await flushed();
    }
    pipe.write('\n{}\n');
    await flushed();
    expect(seen).toEqual([expect.stringContaining('a line of more than')]);
  });

  test('breaks once, on the first line that is not JSON', async () => {
    const { pipe, seen } = channel();
    pipe.write('{}\nnot json\n{}\nnot json\n');
    await flushed();
    expect(seen).toEqual([{}, expect.stringContaining('JSON')]);
    expect(pipe.destroyed).toBe(true);
  });
});
