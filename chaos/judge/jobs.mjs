// What was acknowledged is neither lost nor done twice: each job that a producer was told of is finished once, by the run with the greatest
// fence, and comes to its end soon after the last fault. A job is known by the key in its data: a replica that was promoted may give an id
// again that it has not heard of.
import { BY_CHILD } from './flows.mjs';

const UNFINISHED = ['waiting', 'prioritized', 'delayed', 'active', 'waiting-children'];
/** Jobs fail because the handler or a child says so, and for no other reason: they may stall as often as they like here. */
const ON_PURPOSE = 'on purpose';

export function jobsOf(entries) {
  const of = (event) => entries.filter((entry) => entry.event === event);
  const acknowledged = new Map();
  for (const { jobs, at, who } of of('added')) for (const { id, key } of jobs) acknowledged.set(key, { id, at, who });
  const accepted = new Map();
  for (const entry of of('accepted')) accepted.set(entry.id, [...(accepted.get(entry.id) ?? []), entry]);
  const kept = new Map();
  for (const { list, jobs } of of('kept')) for (const { id, key } of jobs) kept.set(key, { id, list });
  const cancelled = new Set(of('cancelling').map(({ id }) => id));
  return { acknowledged, accepted, cancelled, kept, completed: of('completed'), drained: of('drained')[0] };
}

export function judgeJobs(jobs, holds) {
  const runs = new Map();
  for (const hold of holds) {
    const id = hold.things[0].startsWith('job:') ? hold.things[0].slice('job:'.length) : undefined;
    if (id !== undefined) runs.set(id, [...(runs.get(id) ?? []), hold]);
  }
  return [...lostOrLeft(jobs), ...acceptedWrongly(jobs, runs), ...notKept(jobs), ...addedTwice(jobs, runs), ...sameId(jobs)];
}

function lostOrLeft({ acknowledged, accepted, kept, drained }) {
  const violations = [];
  for (const [key, { id, at, who }] of acknowledged) {
    // The store does not tell the key of a failed one.
    const isFinished = accepted.get(id)?.some((finish) => finish.outcome === 'failed' || finish.key === key) === true;
    if (isFinished || kept.has(key)) continue;
    const text = `job ${id} (${key}) was acknowledged to ${who} and is nowhere`;
    violations.push({ rule: 'lost', text, at, concerns: { ids: [id], who: [who], from: at, to: at } });
  }
  for (const { id, list } of kept.values()) {
    if (!UNFINISHED.includes(list)) continue;
    const at = drained?.at ?? 0;
    const text = `job ${id} is still ${list} after the calm`;
    violations.push({ rule: 'unfinished', text, at, concerns: { ids: [id], from: at, to: at } });
  }
  return violations;
}

function acceptedWrongly({ acknowledged, accepted, cancelled }, runs) {
  const violations = [];
  const idsGivenAgain = new Set(twiceGiven(acknowledged).map(({ id }) => id));
  for (const [id, finishes] of accepted) {
    const [first] = finishes;
    const concerns = { ids: [id], from: first.at, to: finishes.at(-1).at };
    const keys = idsGivenAgain.has(id) ? new Set(finishes.map(({ key }) => key)) : [undefined];
    for (const key of keys) {
      const times = finishes.filter((finish) => key === undefined || finish.key === key).length;
      if (times === 1) continue;
      violations.push({ rule: 'finished twice', text: `job ${id} was finished ${times} times`, at: first.at, concerns });
    }
    for (const { outcome, reason, at } of finishes) {
      const isCancelled = cancelled.has(id) && reason?.includes('cancelled');
      if (outcome === 'failed' && reason !== ON_PURPOSE && !BY_CHILD.test(reason) && !isCancelled)
        violations.push({ rule: 'failed for no reason', text: `job ${id} failed: ${reason}`, at, concerns });
    }
    const last = finishes.at(-1);
    const later = runs.get(id)?.find(({ fence }) => fence > last.fence);
    if (later !== undefined) {
      const text = `job ${id}: the finish of fence ${last.fence} was accepted, and ${later.who} ran it under fence ${later.fence}`;
      violations.push({ rule: 'stale finish', text, at: later.at, concerns: { ...concerns, fences: [last.fence, later.fence] } });
    }
  }
  return violations;
}

/** A worker was told that its finish stands, and another one does, or none. */
function notKept({ accepted, completed }) {
  return completed
    .filter(({ id, fence }) => !(accepted.get(id) ?? []).some((finish) => finish.fence === fence))
    .map(({ id, fence, at, who }) => ({
      rule: 'finish not kept',
      text: `job ${id}: ${who} was told that its finish (fence ${fence}) stands, and the store knows nothing of it`,
      at,
      concerns: { ids: [id], fences: [fence], who: [who], from: at, to: at },
    }));
}

function addedTwice({ acknowledged }, runs) {
  const idsOf = new Map();
  const add = (key, id, at) => {
    const ids = idsOf.get(key) ?? new Map();
    idsOf.set(key, ids);
    if (!ids.has(id)) ids.set(id, at);
  };
  for (const [key, { id, at }] of acknowledged) add(key, id, at);
  for (const [id, [{ key, at }]] of runs) add(key, id, at);
  return [...idsOf]
    .filter(([key, ids]) => key !== undefined && ids.size > 1)
    .map(([key, ids]) => ({
      rule: 'added twice',
      text: `what was added once as ${key} became ${ids.size} jobs: ${[...ids.keys()].join(', ')}`,
      at: Math.min(...ids.values()),
      concerns: { ids: [...ids.keys()], from: Math.min(...ids.values()), to: Math.max(...ids.values()) },
    }));
}

function sameId({ acknowledged }) {
  return twiceGiven(acknowledged).map(({ id, keys, at }) => ({
    rule: 'same id',
    text: `id ${id} was given to ${keys.join(' and ')}`,
    at,
    concerns: { ids: [id], from: at, to: at },
  }));
}

/** Each time that an id was acknowledged for another job than before. */
function twiceGiven(acknowledged) {
  const before = new Map();
  const found = [];
  for (const [key, { id, at }] of acknowledged) {
    const earlier = before.get(id);
    if (earlier !== undefined) found.push({ id, keys: [earlier, key], at });
    before.set(id, key);
  }
  return found;
}
