// An actor's way to the fenced resource (resource.mjs).
import { connect } from 'node:net';
import { createInterface } from 'node:readline';

export function openFencedWrites(path, who) {
  const socket = connect(path);
  const waiting = new Map();
  let count = 0;
  createInterface({ input: socket }).on('line', (line) => {
    const { number, accepted } = JSON.parse(line);
    waiting.get(number)?.(accepted);
    waiting.delete(number);
  });
  // It does not keep a process alive that has closed everything else.
  socket.unref();
  return {
    /** Resolves to false when a greater fence was there before. */
    write: (thing, fence) =>
      new Promise((resolve) => {
        count += 1;
        waiting.set(count, resolve);
        socket.write(`${JSON.stringify({ number: count, by: who, thing, fence })}\n`);
      }),
  };
}
