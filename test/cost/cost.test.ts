import { test } from 'vitest';
import { ENGINES } from './counters.js';
import { costOf, LINES, titleOf } from './lines.js';

test.each(Object.keys(ENGINES) as (keyof typeof ENGINES)[])('%s', async (name) => {
  const start = performance.now();
  const engine = await ENGINES[name]();
  const out: string[] = [];
  for (const line of LINES) {
    const counts = await costOf(engine, line);
    out.push(`${titleOf(name, line)}: ${Object.entries(counts).map(([k, v]) => `${k} ${v}`).join(', ')}`);
  }
  await engine.close();
  console.log(out.join('\n'), engine.version, performance.now() - start);
});
