// Holdfast is an ES module; from Node 20.19 on, `require` loads it like any other package.
const { Queue, Worker } = require('holdfast');

async function main() {
  const connection = 'memory:';
  const queue = new Queue('greetings', { connection });
  const worker = new Worker('greetings', async (job) => `Hello, ${job.data.name}!`, { connection });
  const greeted = new Promise((resolve) => worker.once('completed', (_job, greeting) => resolve(greeting)));

  await queue.add('greet', { name: 'Grace' });
  console.log(await greeted);

  await worker.close();
  await queue.close();
}

void main();

// prints: Hello, Grace!
