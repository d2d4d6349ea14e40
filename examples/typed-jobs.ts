// One map from job names to data and result types. Names and data are checked where jobs are added, and `switch (job.name)` tells the
// processor what it has. BullMQ's own type parameters, Queue<Data, Result, Name>, work as well.
import { Queue, Worker } from 'holdfast';

type Media = {
  resize: { data: { file: string; width: number }; result: string };
  count: { data: { folder: string }; result: number };
};

const queue = new Queue<Media>('media', { connection: 'memory:' });

const worker = new Worker<Media>(
  'media',
  async (job) => {
    switch (job.name) {
      case 'resize':
        return `${job.data.file} at ${job.data.width} px`;
      case 'count':
        return job.data.folder.length;
    }
  },
  { connection: 'memory:' },
);
worker.on('completed', (job, result) => console.log(`${job.name}: ${result}`));
const drained = new Promise<void>((resolve) => worker.once('drained', resolve));

// Together, so that the queue is not drained between them.
await Promise.all([queue.add('resize', { file: 'cat.png', width: 200 }), queue.add('count', { folder: 'photos' })]);
// @ts-expect-error: a job named 'resize' needs a width.
const wrong = () => queue.add('resize', { file: 'cat.png' });
// @ts-expect-error: no job has this name.
const unknown = () => queue.add('rotate', { file: 'cat.png' });
void [wrong, unknown];

await drained;
await worker.close();
await queue.close();

// prints: resize: cat.png at 200 px
// prints: count: 6
