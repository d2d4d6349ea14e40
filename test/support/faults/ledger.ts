// Compares what the victims wrote into their diaries with what the store says in the end and what its event log said all along.
// Every complaint is a broken promise.
import { existsSync, readFileSync } from 'node:fs';
import type { Store } from 'holdfast';

interface Entry {
  event: 'adding' | 'added' | 'start' | 'end' | 'finished' | 'error' | 'ready';
  at: number;
  pid: number;
  id: string;
  key: string;
  fence: number;
  prioritized: boolean;
  keys: string[];
  jobs: { id: string; key: string }[];
  message: string;
}

interface Completion {
  id: string;
  key: string;
  fence: number;
}

export interface Ledger {
  acknowledged: number;
  starts: number;
  finishes: number;
  /** Milliseconds from the death of a worker to the next start of a job that it was running, unless that has to let others pass. */
  recoveries: number[];
  complaints: string[];
}

/** Follows the event log from its beginning, for it is trimmed. */
export class CompletionTail {
  readonly completions: Completion[] = [];
  readonly failures: string[] = [];
  readonly #store: Store;
  #last = 0;

  constructor(store: Store) {
    this.#store = store;
  }

  async read(): Promise<void> {
    for (;;) {
      const { events, last } = await this.#store.events('work', this.#last, 1000);
      this.#last = last;
      for (const { name, jobId = '', ...fields } of events) {
        if (name === 'completed')
          this.completions.push({ id: jobId, ...(JSON.parse(String(fields['returnvalue'])) as { key: string; fence: number }) });
        if (name === 'failed') this.failures.push(`${jobId}: ${fields['failedReason']}`);
      }
      if (events.length < 1000) return;
    }
  }
}

export async function audit(
  diaries: string[],
  deaths: { pid: number; at: number }[],
  tail: CompletionTail,
  store: Store,
): Promise<Ledger> {
  const entries = diaries
    .filter((file) => existsSync(file))
    .flatMap(readDiary)
    .toSorted((a, b) => a.at - b.at);
  const of = (event: Entry['event']): Entry[] => entries.filter((entry) => entry.event === event);
  const complaints: string[] = tail.failures.map((failure) => `failed: ${failure}`);
  const acknowledged = of('added').flatMap(({ jobs }) => jobs);
  const completions = groupBy(tail.completions, ({ id }) => id);

  for (const [id, accepted] of completions) {
    if (accepted.length > 1) complaints.push(`job ${id} was finished ${accepted.length} times`);
  }
  for (const { id, key } of acknowledged) {
    if (!completions.has(id)) complaints.push(`job ${id} (${key}) was acknowledged and never completed`);
  }
  const tried = new Set(of('adding').flatMap(({ keys }) => keys));
  for (const [key, jobs] of groupBy(tail.completions, (completion) => completion.key)) {
    if (!tried.has(key)) complaints.push(`nobody added ${key}`);
    if (new Set(jobs.map(({ id }) => id)).size > 1) complaints.push(`${key} was added twice`);
  }
  complaints.push(...judgeRuns(entries, completions));
  complaints.push(...(await judgeStore(store)));
  return {
    acknowledged: acknowledged.length,
    starts: of('start').length,
    finishes: of('finished').length,
    recoveries: recoveriesOf(entries, deaths),
    complaints,
  };
}

function judgeRuns(entries: Entry[], completions: Map<string, Completion[]>): string[] {
  const complaints: string[] = [];
  const starts = entries.filter(({ event }) => event === 'start');
  if (new Set(starts.map(({ fence }) => fence)).size < starts.length) complaints.push('two runs had the same fence');
  const endOf = new Map(entries.filter(({ event }) => event === 'end').map((entry) => [entry.fence, entry.at]));
  const lastWord = new Map(entries.map(({ pid, at }) => [pid, at]));
  for (const [id, runs] of groupBy(starts, (start) => start.id)) {
    runs.forEach((run, index) => {
      const next = runs[index + 1];
      if (next === undefined) return;
      if (next.fence <= run.fence) complaints.push(`job ${id}: fence ${next.fence} came after ${run.fence}`);
      // A run that did not end must have died: its process says nothing after the next one began.
      const over = endOf.get(run.fence) ?? lastWord.get(run.pid) ?? 0;
      if (over > next.at) complaints.push(`job ${id}: two runs at once, ${run.fence} and ${next.fence}`);
    });
    const accepted = completions.get(id)?.[0]?.fence;
    if (accepted !== undefined && accepted !== runs.at(-1)?.fence)
      complaints.push(`job ${id}: run ${accepted} was accepted and not its last one`);
  }
  for (const { id, fence } of entries.filter(({ event }) => event === 'finished')) {
    if (completions.get(id)?.[0]?.fence !== fence)
      complaints.push(`job ${id}: finish ${fence} was acknowledged and another stands`);
  }
  return complaints;
}

/** Everything came to its end, and every job is in exactly one place. */
async function judgeStore(store: Store): Promise<string[]> {
  const complaints: string[] = [];
  const { counts } = await store.status('work');
  const lists = ['waiting', 'prioritized', 'delayed', 'active', 'completed', 'failed'] as const;
  const seen = new Map<string, string>();
  for (const list of lists) {
    const { jobs } = await store.jobs('work', { lists: [list], start: 0, end: -1, asc: true });
    if (jobs.length !== counts[list]) complaints.push(`${list} has ${jobs.length} jobs and is counted as ${counts[list]}`);
    if (list !== 'completed' && jobs.length > 0) complaints.push(`${jobs.length} jobs are left ${list}`);
    for (const { id } of jobs) {
      const before = seen.get(id);
      if (before !== undefined) complaints.push(`job ${id} is both ${before} and ${list}`);
      seen.set(id, list);
    }
  }
  for (const { id, locks } of await store.sessions('work'))
    if (locks > 0) complaints.push(`session ${id} still holds ${locks} locks`);
  return complaints;
}

function recoveriesOf(entries: Entry[], deaths: { pid: number; at: number }[]): number[] {
  const recoveries: number[] = [];
  const starts = entries.filter(({ event }) => event === 'start');
  const ended = new Set(entries.filter(({ event }) => event === 'end').map(({ fence }) => fence));
  for (const death of deaths) {
    for (const run of starts.filter(({ pid, fence, prioritized }) => pid === death.pid && !ended.has(fence) && !prioritized)) {
      const next = starts.find(({ id, fence }) => id === run.id && fence > run.fence);
      if (next !== undefined) recoveries.push(next.at - death.at);
    }
  }
  return recoveries.toSorted((a, b) => a - b);
}

function readDiary(file: string): Entry[] {
  // The last line may have been cut by the kill.
  const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1);
  return lines.map((line) => JSON.parse(line) as Entry);
}

function groupBy<T>(items: T[], keyOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [item]);
    else group.push(item);
  }
  return groups;
}
