// The levels of the suite. A store can pass `core` before it has the verbs of the other levels. The author of a store names the
// levels to run; a test that needs several levels runs only if all of them run.
import { HoldfastError } from '../../errors.js';

interface LevelInfo {
  /** The levels whose verbs the tests of this level use too. They run together with this level. */
  buildsOn: readonly string[];
  /** The verbs and rules that a store needs for this level, in addition to the levels below it. */
  needs: string;
}

const ON_CORE = ['core'] as const;

export const LEVELS = {
  core: {
    buildsOn: [],
    needs:
      '`open`, `close`, `describe`, `add`, `claim`, `settle`, `openSession`, `renew`, `closeSessions`, `sweep`, `jobs`, `locks`, `sessions`, `status`, `events`',
  },
  inspecting: { buildsOn: ON_CORE, needs: '`queues`; the order and the pages of the lists that `jobs` returns' },
  keeping: {
    buildsOn: ON_CORE,
    needs: 'limits on finished jobs: `keep` of an outcome with a count above 0 or an age, and `removeOnFail`',
  },
  control: {
    buildsOn: ON_CORE,
    needs: '`configure` (pause and block), `blockedMs` of `status`, `limit` of a claim, `write`, `logs`, `forget`',
  },
  changing: { buildsOn: ON_CORE, needs: '`change`, and the notices that `renew` returns' },
  'timed-locks': { buildsOn: ON_CORE, needs: '`timedMs` of a claim, `extend`, also with `alone`' },
  'claims-by-id': { buildsOn: ON_CORE, needs: '`jobIds` of a claim' },
  keys: { buildsOn: ON_CORE, needs: '`lockKey` of a job' },
  deduplication: { buildsOn: ON_CORE, needs: '`deduplication` of a job, of `status` and of `forget`' },
  schedules: {
    buildsOn: ON_CORE,
    needs: '`schedule`, `schedules` of `status`, `debt` of a claimed job, `undone` of `claim` and `probe`',
  },
  rates: { buildsOn: ['core', 'control'], needs: '`rate` of `configure`; `rate` and `window` of `status`' },
  metrics: { buildsOn: ['core', 'control'], needs: '`metrics` of `configure` and `status`, `priorities` of `status`' },
  'own-events': { buildsOn: ['core', 'control'], needs: 'events of users: `event` of `write`' },
  groups: {
    buildsOn: ['core', 'control'],
    needs: '`group` of a job, `group` and `groups` of `configure`, `groups` of `status`, `jobs` of a group',
  },
  families: {
    buildsOn: ['core', 'control', 'changing', 'claims-by-id', 'keeping', 'inspecting'],
    needs:
      '`parents`, `waitsForChildren` and `queue` of a job, `relay`, `children`, the outcome `children`, if the capability `families` is set',
  },
  steps: {
    buildsOn: ['core', 'control', 'changing'],
    needs: '`step` of `write`, `step` and `awaits` of the outcome `delay`, `jobs` with `stepsOf`, `fromStep` of a retry',
  },
  cancelling: {
    buildsOn: ['core', 'changing', 'keeping', 'hints'],
    needs: '`cancel` of `change`, `noticed` of `checkSessions`',
  },
  caps: { buildsOn: ['core', 'control'], needs: '`cap` of `configure`' },
  'named-locks': { buildsOn: ON_CORE, needs: '`acquire`, `letGo`, `locks` by name' },
  hints: { buildsOn: ON_CORE, needs: '`probe`, `checkSessions`' },
  lanes: { buildsOn: ON_CORE, needs: '`lane` of a call, if the capability `lanes` is above 1' },
  waking: { buildsOn: ON_CORE, needs: '`watch`' },
  large: { buildsOn: ON_CORE, needs: 'replies and event logs that are bounded by bytes' },
  together: {
    buildsOn: [
      ...['core', 'inspecting', 'keeping', 'control', 'changing', 'timed-locks', 'claims-by-id', 'keys', 'caps'],
      ...['deduplication', 'schedules', 'rates', 'metrics', 'own-events', 'groups', 'families', 'steps', 'cancelling'],
      ...['named-locks', 'hints', 'lanes', 'waking', 'large'],
    ],
    needs: 'all verbs, with thousands of items and in random order',
  },
} as const satisfies Record<string, LevelInfo>;

export type Level = keyof typeof LEVELS;

/** Returns the named levels and all levels that they build on. Without names, returns all levels. */
export function levelsToRun(names: readonly Level[] = Object.keys(LEVELS) as Level[]): Set<Level> {
  const chosen = new Set<Level>();
  for (const name of names) {
    if (!Object.hasOwn(LEVELS, name)) throw unknownLevel(name);
    for (const level of [...LEVELS[name].buildsOn, name]) chosen.add(level as Level);
  }
  if (chosen.size === 0) throw unknownLevel('none');
  return chosen;
}

function unknownLevel(name: string): HoldfastError {
  const known = Object.keys(LEVELS).join(', ');
  return new HoldfastError(
    'INVALID_OPTION',
    `levels must name levels of the conformance suite, but it names ${JSON.stringify(name)}. The levels are: ${known}. Leave the option out to run all.`,
    { option: 'levels' },
  );
}
