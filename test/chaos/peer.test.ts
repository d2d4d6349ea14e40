import { expect, test } from 'vitest';
import { peersAreInstalled } from '../../bench/peers.mjs';
import { chaos, LIMIT, SHORT } from './program.js';

// Installing them takes minutes; `npm run bench` or `npm run chaos -- --peer bullmq` does it once.
test.skipIf(!peersAreInstalled())('BullMQ and Holdfast under the same faults, side by side', LIMIT, async () => {
  const { code, output } = await chaos(
    '--store',
    'redis',
    '--peer',
    'bullmq',
    '--compare',
    '--locks',
    'short',
    '--seed',
    '3',
    ...SHORT,
  );
  const row = (label: string): number[] => {
    const line = output.split('\n').find((text) => text.startsWith(label)) ?? '';
    return line.slice(label.length).trim().split(/ {2,}/).map(Number);
  };
  expect(output).toMatch(/bullmq \d+\.\d+\.\d+ +holdfast$/m);
  for (const label of ['faults', 'jobs acknowledged', 'runs', 'completed', 'flows acknowledged']) {
    const [peer, own] = row(label);
    expect(peer, `${label}\n${output}`).toBeGreaterThan(0);
    expect(own, `${label}\n${output}`).toBeGreaterThan(0);
  }
  // What is promised is promised here as well; of the peer nothing is asserted.
  for (const label of [
    'acknowledged jobs lost',
    'two finishes accepted',
    '  … whose owner believed in its lock',
    '  … parents that wait for children',
    'parents that began before their children',
  ])
    expect(row(label)[1], `${label}\n${output}`).toBe(0);
  expect(code).toBe(0);
});
