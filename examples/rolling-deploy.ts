// A rolling deploy: three processes are replaced one after the other while jobs come in. No job is lost, runs twice or counts as stalled.
// `node rolling-deploy.js worker` is the program of the container, with the probes of Kubernetes: examples/deploy has a Dockerfile and
// a manifest for it. Without the argument, this program plays the cluster.
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { onSignals, Queue, Worker } from 'holdfast';

const connection = process.env['HOLDFAST_URL'] ?? 'sqlite:parcels.db';

/** The processes that run. */
const running = new Set<ChildProcess>();

if (process.argv[2] === 'worker') runWorker();
else await runCluster();

function runWorker(): void {
  const worker = new Worker(
    'parcels',
    async (_job, _token, signal) => {
      await new Promise((resolve) => setTimeout(resolve, 50));
      // A handler that takes long looks at its signal: it is aborted when the time is over, and the job goes back to waiting.
      signal.throwIfAborted();
      return process.pid;
    },
    { connection, concurrency: 4 },
  );
  worker.on('error', (error) => console.error(error));
  worker.on('interrupted', (job) => console.log(`job ${job.id} goes on elsewhere`));

  const probes = createServer((request, response) => {
    const health = worker.health();
    // Ready: it takes jobs. Live: it makes progress, or finishes what it has.
    const isFine = request.url === '/ready' ? health.healthy : health.healthy || health.closing;
    response.writeHead(isFine ? 200 : 503, { 'content-type': 'application/json' });
    response.end(JSON.stringify(health));
  });
  probes.listen(Number(process.env['PORT'] ?? 8080), () => process.send?.((probes.address() as AddressInfo).port));

  // Shorter than terminationGracePeriodSeconds of the manifest by some seconds. Workers are closed first, then the rest.
  onSignals([worker, { close: () => probes.close() }], { timeoutMs: 20_000 });
}

async function runCluster(): Promise<void> {
  const queue = new Queue('parcels', { connection });
  const pods = [await startPod(), await startPod(), await startPod()];

  let added = 0;
  const load = setInterval(() => void queue.add('parcel', { number: (added += 1) }), 10);
  for (const old of pods) {
    await startPod();
    old.kill('SIGTERM');
    const [code] = (await once(old, 'exit')) as [number | null];
    console.log('replaced a process, its exit code:', code);
  }
  clearInterval(load);

  while ((await queue.getCompletedCount()) < added) await new Promise((resolve) => setTimeout(resolve, 50));
  const jobs = await queue.getCompleted(0, -1);
  console.log('all jobs completed:', jobs.length === added);
  console.log('started twice:', jobs.filter((job) => job.attemptsStarted > 1).length);
  console.log('stalled:', jobs.filter((job) => job.stalledCounter > 0).length);

  for (const pod of running) pod.kill('SIGTERM');
  await Promise.all([...running].map((pod) => once(pod, 'exit')));
  await queue.close();
}

/** Starts a process, and waits until it is ready, as Kubernetes does before it ends an old one. */
async function startPod(): Promise<ChildProcess> {
  const pod = fork(fileURLToPath(import.meta.url), ['worker'], { env: { ...process.env, PORT: '0' } });
  running.add(pod);
  pod.once('exit', () => running.delete(pod));
  const [port] = (await once(pod, 'message')) as [number];
  while (!(await fetch(`http://127.0.0.1:${port}/ready`)).ok) await new Promise((resolve) => setTimeout(resolve, 50));
  return pod;
}

// prints: replaced a process, its exit code: 0
// prints: replaced a process, its exit code: 0
// prints: replaced a process, its exit code: 0
// prints: all jobs completed: true
// prints: started twice: 0
// prints: stalled: 0
