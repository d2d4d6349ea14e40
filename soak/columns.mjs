// What is looked at, and how much more of it at the end is still flat: `share` of what there was in the second quarter, and `slack` on top.
// The slack is what comes and goes by itself: jobs that happen to run, a page of the allocator, a vacuum that has not come by yet.
const MIB = 2 ** 20;

const bytes = (share, slackMib) => ({ share, slack: slackMib * MIB, shown: (value) => (value / MIB).toFixed(1), unit: 'MiB' });
const pieces = (share, slack) => ({ share, slack, shown: (value) => String(Math.round(value)), unit: '' });

const OF_A_PROCESS = {
  rss: bytes(0.1, 5),
  heap: bytes(0.05, 1),
  handles: pieces(0.1, 5),
  timers: pieces(0.25, 10),
  descriptors: pieces(0.1, 5),
  threads: pieces(0, 1),
};
const OF_A_STORE = {
  redis: { connections: pieces(0.1, 5), store: bytes(0.1, 1), keys: pieces(0.1, 50) },
  postgres: { connections: pieces(0.1, 5), store: bytes(0.15, 2), dead: pieces(0.5, 10_000) },
  sqlite: { store: bytes(0.1, 1), wal: bytes(0.5, 4) },
};

/** By name, in the order in which they are printed. */
export function columnsOf(store) {
  const of = (role) => Object.entries(OF_A_PROCESS).map(([what, column]) => [`${role} ${what}`, column]);
  return new Map([...of('worker'), ...of('producer'), ...Object.entries(OF_A_STORE[store])]);
}
