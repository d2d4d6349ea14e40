// The simulator itself: a seed means the same run for ever, and a failure is told so that somebody can use it.
import { describe, expect, it } from 'vitest';
import { History, tell } from '../../simulation/history.mjs';
import { planOf } from '../../simulation/plan.mjs';
import { run } from '../../simulation/run.mjs';
import { simulate } from './seeds.js';
import { paced } from '../support/wait/pace.js';

async function historyOf(seed: number): Promise<string> {
  const history = new History();
  const { steps } = await run(planOf(seed), { history });
  return `${steps} steps\n${tell(history, undefined).join('\n')}`;
}

// They calculate all the time, and the machine may have other things to do.
const patience = { timeout: paced(120_000) };

describe('a run', patience, () => {
  it('is the same each time, to the last step', async () => {
    for (const seed of [3, 4, 5, 6, 7]) expect(await historyOf(seed)).toBe(await historyOf(seed));
  });

  it('is another one with another seed', async () => {
    expect(await historyOf(1)).not.toBe(await historyOf(2));
  });

  it('does not depend on whether it is written down', async () => {
    const plan = planOf(8);
    expect(await run(plan)).toEqual(await run(plan, { history: new History() }));
  });
});

describe('npm run simulate', patience, () => {
  it('tells the least that a failure takes, and the command that shows it again', async () => {
    const defect = ['--defect', 'an active job is granted again'];
    const failed = await simulate('--runs', '2', ...defect);
    expect(failed.code).toBe(1);
    expect(failed.output).toMatch(/^✗ seed \d+: one lock per job$/m);
    expect(failed.output).toMatch(/^ +\d+\.\d ms {2}violated: one lock per job$/m);
    const [, seed = '', items = ''] = /--seed (\d+) --only (\S+)/.exec(failed.output) ?? [];
    const again = await simulate('--seed', seed, '--only', items, ...defect);
    expect(again.code).toBe(1);
    expect(again.output).toMatch(/^violations {2}1: seed \d+$/m);
    const right = await simulate('--seed', seed, '--only', items);
    expect(right.code).toBe(0);
  });

  it('counts what it did', async () => {
    const { code, output } = await simulate('--seed', '100', '--runs', '10');
    expect(code).toBe(0);
    expect(output).toMatch(/^runs {8}10, /m);
    expect(output).toMatch(/^steps {7}[\d,]+, /m);
    expect(output).toMatch(/^faults {6}[1-9]/m);
    expect(output).toMatch(/^violations {2}0$/m);
  });

  it.each([
    [['--seed', 'x'], /--seed takes a whole number from 0 up, not x/],
    [['--runs', '0'], /--runs takes a whole number from 1 up, not 0/],
    [['--rnus', '5'], /Unknown option '--rnus'[\s\S]*npm run simulate --/],
    [['--defect', 'none such'], /--defect none such is not known/],
    [['--store', 'redis'], /--store takes memory, sqlite, split, not redis/],
    [['--only', 'f99'], /--only f99: seed 1 has f0/],
    [['--history', '--runs', '2'], /--history is about one seed/],
  ])('refuses %s with a reason', async (args, reason) => {
    const { code, output } = await simulate(...args);
    expect(code).toBe(1);
    expect(output).toMatch(reason);
  });

  it('shows all that happened in one run', async () => {
    const { code, output } = await simulate('--seed', '3', '--history');
    expect(code).toBe(0);
    expect(output).toMatch(/ms {2}store +\S+ is granted to /);
  });
});
