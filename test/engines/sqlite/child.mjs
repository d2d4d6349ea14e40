// A process with a store of its own, for tests of what processes do to each other: it carries out what it is sent.
import { SqliteStore } from '../../../dist/store/sqlite/index.js';

const [, , path] = process.argv;
const store = new SqliteStore({ path });

const commands = {
  /** Settles and claims `batch` jobs a call, without a pause, for `ms`; answers how many it finished. */
  async race({ queue, session, batch, ms }) {
    const end = performance.now() + ms;
    let held = [];
    let done = 0;
    for (let seq = 1; performance.now() < end; seq += 1) {
      const outcomes = held.map(({ id, token }) => ({ kind: 'completed', jobId: id, token, value: '1', keep: { count: 0 } }));
      const { claimed } = await store.settle(queue, outcomes, { caller: session, seq }, { session, seq, count: batch });
      done += held.length;
      held = claimed.jobs;
    }
    return done;
  },
  /** Answers when it first wakes, in ms since the epoch. */
  waking(queue) {
    return new Promise((resolve) => {
      const stop = store.watch(queue, () => {
        stop();
        resolve(performance.timeOrigin + performance.now());
      });
    });
  },
};

process.on('message', async ({ number, verb, args }) => {
  try {
    const reply = await (commands[verb] === undefined ? store[verb](...args) : commands[verb](...args));
    process.send({ number, reply });
    if (verb === 'close') process.disconnect();
  } catch (error) {
    process.send({ number, error: { code: error.code, message: error.message } });
  }
});
process.send('started');
