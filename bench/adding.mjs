// Adding one by one (each acknowledged before the next), with 1,000 in flight, and in bulks of 1,000.
import { Queue } from 'holdfast';
import { fill, PAYLOAD, timed, withStore } from './scene.mjs';

export async function adding(engine, scale) {
  return withStore(engine, async (store) => {
    const queue = new Queue('bench', { connection: store });
    const lone = Math.ceil(2000 * scale);
    const many = Math.ceil(20_000 * scale);
    await fill(queue, 1000);
    const oneByOne = await timed(async () => {
      for (let n = 0; n < lone; n += 1) await queue.add('work', PAYLOAD);
    });
    const inFlight = await timed(async () => {
      for (let n = 0; n < many; n += 1000) await Promise.all(Array.from({ length: 1000 }, () => queue.add('work', PAYLOAD)));
    });
    const flown = Math.ceil(many / 1000) * 1000;
    const bulk = await timed(() => fill(queue, many));
    await queue.close();
    return [
      { what: 'add, one by one', unit: 'jobs/s', value: lone / oneByOne },
      { what: 'add, 1,000 in flight', unit: 'jobs/s', value: flown / inFlight },
      { what: 'add, bulks of 1,000', unit: 'jobs/s', value: many / bulk },
    ];
  });
}
