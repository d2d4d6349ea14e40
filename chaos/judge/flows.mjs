// A parent starts when its children have ended, and each job of a flow that fails for good sends one letter. That every acknowledged job
// comes to one end is judged for all jobs alike.

import { byThing } from './holds.mjs';

/** Why a parent fails without a run. */
export const BY_CHILD = /^child \S+ failed$/;

/** The children of each job of a flow. */
function familiesOf(entries) {
  const families = new Map();
  for (const { event, nodes } of entries) if (event === 'flow') for (const { id, children } of nodes) families.set(id, children);
  return families;
}

export function judgeFlows(entries, { accepted }, holds) {
  const families = familiesOf(entries);
  if (families.size === 0) return [];
  const runs = byThing(holds);
  return [...early(families, accepted, runs), ...letters(entries, families, accepted)];
}

function early(families, accepted, runs) {
  const violations = [];
  for (const [id, children] of families) {
    const [first] = (runs.get(`job:${id}`) ?? []).toSorted((a, b) => a.at - b.at);
    if (first === undefined) continue;
    for (const child of children) {
      const last = lastRun(accepted.get(child), runs.get(`job:${child}`) ?? []);
      const isOpen = accepted.get(child) === undefined;
      if (!isOpen && (last?.endAt ?? 0) <= first.at) continue;
      violations.push({
        rule: 'parent before its children',
        text: `${first.who} began ${id} (fence ${first.fence}), and its child ${child} ${isOpen ? 'has not ended' : 'was running'}`,
        at: first.at,
        concerns: { ids: [id, child], fences: [first.fence], who: [first.who], from: first.at, to: last?.endAt ?? first.at },
      });
    }
  }
  return violations;
}

/** The run that ended a job: the one whose finish was accepted. The store does not tell the fence of a failed one, which is the greatest. */
function lastRun(finishes, runs) {
  const fence = finishes?.at(-1)?.fence;
  const sorted = runs.toSorted((a, b) => b.fence - a.fence);
  return fence === undefined ? sorted[0] : sorted.find((run) => run.fence === fence);
}

function letters(entries, families, accepted) {
  const kept = entries.find(({ event }) => event === 'letters');
  if (kept === undefined) return [];
  const violations = [];
  for (const id of new Set([...families.keys(), ...kept.origins])) {
    const failures = (accepted.get(id) ?? []).filter(({ outcome }) => outcome === 'failed').length;
    const sent = kept.origins.filter((origin) => origin === id).length;
    if (sent === failures) continue;
    const at = accepted.get(id)?.[0]?.at ?? kept.at;
    const text = `job ${id} failed for good ${failures} times, and ${sent} letters came`;
    const rule = sent < failures ? 'letter missing' : 'letter twice';
    violations.push({ rule, text, at, concerns: { ids: [id], from: at, to: at } });
  }
  return violations;
}

/** How many flows were acknowledged. */
export function countFlows(entries, { acknowledged }) {
  const roots = entries.filter(({ event }) => event === 'flow').map(({ nodes }) => nodes[0].id);
  const known = new Set([...acknowledged.values()].map(({ id }) => id));
  return roots.filter((id) => known.has(id)).length;
}
