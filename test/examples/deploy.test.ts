// The files of examples/deploy fit the program that they deploy.
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const read = (name: string): string => readFileSync(new URL(`../../examples/${name}`, import.meta.url), 'utf8');
const program = read('rolling-deploy.ts');
const dockerfile = read('deploy/Dockerfile');
const manifest = read('deploy/kubernetes.yaml');
const found = (text: string, pattern: RegExp): string => pattern.exec(text)?.[1] ?? '';

test('the Dockerfile starts Node itself, as the worker of the example', () => {
  const command = JSON.parse(found(dockerfile, /^CMD (\[.*\])$/m)) as string[];
  expect(command).toEqual(['node', 'rolling-deploy.js', 'worker']);
  expect(dockerfile).toContain('COPY rolling-deploy.js ./');
  expect(program).toContain("process.argv[2] === 'worker'");
});

test('Kubernetes waits longer than the worker does for its jobs', () => {
  const timeoutMs = Number(found(program, /timeoutMs: ([\d_]+)/).replace('_', ''));
  const graceMs = Number(found(manifest, /terminationGracePeriodSeconds: (\d+)/)) * 1000;
  // onSignals takes up to five seconds more for workers, and five for the rest.
  expect(graceMs).toBeGreaterThanOrEqual(timeoutMs + 10_000);
});

test('the probes ask for paths and the port that the worker serves', () => {
  expect(found(manifest, /readinessProbe:\n\s+httpGet: \{ path: (\S+), port: 8080 \}/)).toBe('/ready');
  expect(found(manifest, /livenessProbe:\n\s+httpGet: \{ path: (\S+), port: 8080 \}/)).toBe('/live');
  expect(program).toContain("request.url === '/ready'");
  for (const text of [program, dockerfile, manifest]) expect(text).toContain('8080');
  for (const text of [program, manifest]) expect(text).toContain('HOLDFAST_URL');
});
