// Something that jobs, leaders and holders of locks write to, and that is no store: it takes a write with its fence, and refuses it when it
// has seen a greater one for the same thing. It lives in the conductor, behind a socket, so that a frozen writer holds up nobody.
import { createServer } from 'node:net';
import { createInterface } from 'node:readline';

export class Resource {
  #greatest = new Map();
  #sockets = new Set();
  #note;
  #isFenced;
  #server = createServer((socket) => this.#serve(socket));

  /** One that is not fenced takes every write as it comes: for those who are given no fence. */
  constructor(note, { isFenced = true } = {}) {
    this.#isFenced = isFenced;
    this.#note = note;
  }

  open(path) {
    return new Promise((resolve, reject) => this.#server.once('error', reject).listen(path, resolve));
  }

  close() {
    for (const socket of this.#sockets) socket.destroy();
    return new Promise((resolve) => this.#server.close(resolve));
  }

  #serve(socket) {
    this.#sockets.add(socket);
    socket.on('close', () => this.#sockets.delete(socket)).on('error', () => socket.destroy());
    const lines = createInterface({ input: socket });
    // A killed writer; the socket itself has been heard above.
    lines.on('error', () => undefined);
    lines.on('line', (line) => {
      const { number, by, thing, fence } = JSON.parse(line);
      const accepted = !this.#isFenced || fence >= (this.#greatest.get(thing) ?? 0);
      if (accepted) this.#greatest.set(thing, fence);
      this.#note('write', { by, thing, fence, accepted });
      if (!socket.destroyed) socket.write(`${JSON.stringify({ number, accepted })}\n`);
    });
  }
}
