// The piece of history that shows a violation: the lines of those whom it concerns, with the faults that struck them or everybody.
const AROUND_MS = 10_000;
const MOST_LINES = 40;
const FOR_ALL = ['server', 'everybody', 'disk', 'file'];

/** @returns {string[]} */
export function excerpt(entries, { concerns }) {
  const { ids = [], who = [], writes = false, from, to } = concerns;
  const isRun = ({ event, things }) => event === 'take' && ids.some((id) => things.includes(`job:${id}`));
  const fences = [...(concerns.fences ?? []), ...entries.filter(isRun).map(({ fence }) => fence)];
  const parts = who.map((name) => name.split('.')[0]);
  const near = ({ at }) => at >= from - AROUND_MS && at <= to + 1000;
  const shows = (entry) => {
    const { event, fence, id, victim, target, jobs } = entry;
    if (event === 'write') return writes && fences.includes(fence);
    if (event === 'holds') return false;
    if (fences.includes(fence) || ids.includes(id)) return true;
    if (jobs?.some((job) => ids.includes(job.id))) return true;
    if (event === 'promoted') return near(entry);
    if (event === 'killed') return who.includes(victim);
    if (event === 'fault' || event === 'fault over')
      return near(entry) && (FOR_ALL.includes(target) || parts.some((part) => target.endsWith(part)));
    return event === 'error' && near(entry) && who.includes(entry.who);
  };
  const begun = entries[0]?.at ?? 0;
  const only = (entry) => ('jobs' in entry ? { ...entry, jobs: entry.jobs.filter(({ id }) => ids.includes(id)) } : entry);
  const lines = entries.filter(shows).map((entry) => lineOf(only(entry), begun));
  const left = lines.length - MOST_LINES;
  return left > 0 ? [...lines.slice(0, MOST_LINES), `… and ${left} lines more`] : lines;
}

function lineOf({ at, who, event, ...fields }, begun) {
  const seconds = ((at - begun) / 1000).toFixed(3).padStart(9);
  const details = Object.entries(fields).map(([name, value]) => `${name}=${shown(name, value, begun)}`);
  return `${seconds} s  ${who.padEnd(11)} ${event} ${details.join(' ')}`.slice(0, 200);
}

function shown(name, value, begun) {
  if (name === 'lastHeld' && typeof value === 'number') return `${((value - begun) / 1000).toFixed(3)} s`;
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}
