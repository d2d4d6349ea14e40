// The process of one contestant. The driver tells it what to do, a verb at a time, and it answers; what happens in between it tells as
// events. It must run on every Node that a contestant needs, and ends with its driver.
import { pathToFileURL } from 'node:url';
import { verbs } from './verbs.mjs';

const { open } = await import(pathToFileURL(process.argv[2]).href);
const tell = (event) => process.send(event, () => undefined);
const known = verbs(open, tell);

process.on('disconnect', () => process.exit());
process.on('message', ({ call, verb, args }) => {
  known[verb](args).then(
    (answer) => tell({ call, answer }),
    (error) => tell({ call, error: error?.stack ?? String(error) }),
  );
});
tell({ event: 'ready' });
