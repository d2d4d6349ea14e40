// Two instances stand for election: one leads, and when it closes the other leads at once, in a later term.
import { Leader } from 'holdfast';

const connection = 'sqlite:leader.db';
const first = new Leader('reports', { connection });
first.on('leader', () => console.log('the first leads'));
first.on('follower', (reason) => console.log(`the first follows: ${reason}`));
await first.waitUntilReady();
// prints: the first leads
const { term: before = 0 } = first;

const second = new Leader('reports', { connection });
second.on('follower', (reason) => console.log(`the second follows: ${reason}`));
await second.waitUntilReady();
// prints: the second follows: another instance leads

let begun: () => void = () => undefined;
const beginning = new Promise<void>((resolve) => (begun = resolve));
// Called whenever it leads: the signal ends the work, and the term goes with everything that it writes.
const working = second.run(async (signal, term) => {
  console.log(`the second leads, in a later term: ${term > before}`);
  begun();
  await new Promise((resolve) => signal.addEventListener('abort', resolve));
  console.log('the second stops');
});

await first.close();
// prints: the first follows: it was closed
await beginning;
// prints: the second leads, in a later term: true
await second.close();
// prints: the second stops
await working;
