// A parent starts when its children have ended, and each job of a flow that fails for good sends one letter. That every acknowledged job
// comes to one end is judged for all jobs alike.

import { byThing } from './holds.mjs';

/** Why a parent fails without a run. */
export const BY_CHILD = /^child \S+ failed$/;

/** The children of each job of a flow, and when the flow was added. */
function familiesOf(entries) {
  const families = new Map();
  for (const { event, nodes, at } of entries)
    if (event === 'flow') for (const { id, children } of nodes) families.set(id, { children, at });
  return families;
}

export function judgeFlows(entries, jobs, holds) {
  const families = familiesOf(entries);
  if (families.size === 0) return [];
  const runs = byThing(holds);
  return [...early(families, jobs, runs), ...letters(entries, families, jobs, runs)];
}

function early(families, { accepted, kept }, runs) {
  const violations = [];
  const isKept = new Set([...kept.values()].map(({ id }) => id));
  for (const [id, { children, at }] of families) {
    const [first] = (runs.get(`job:${id}`) ?? []).toSorted((a, b) => a.at - b.at);
    if (first === undefined) continue;
    for (const child of children) {
      const runsOfChild = runs.get(`job:${child}`) ?? [];
      const last = lastRun(accepted.get(child), runsOfChild);
      const isOpen = accepted.get(child) === undefined;
      if (!isOpen && (last?.endAt ?? 0) <= first.at) continue;
      // A store that has lost the end of the child, or the child, had let its parent begin rightly.
      const ended = runsOfChild.find((run) => run.endAt <= first.at);
      const isGone = isOpen && !isKept.has(child);
      const lost = ended !== undefined || isGone;
      violations.push({
        rule: lost ? 'child lost before its parent began' : 'parent before its children',
        text: `${first.who} began ${id} (fence ${first.fence}), and its child ${child} ${isGone ? 'is nowhere' : isOpen ? 'has not ended' : 'was running'}`,
        at: lost ? (ended?.endAt ?? at) : first.at,
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

function letters(entries, families, { accepted }, runs) {
  const kept = entries.find(({ event }) => event === 'letters');
  if (kept === undefined) return [];
  const violations = [];
  for (const id of new Set([...families.keys(), ...kept.origins])) {
    const failures = (accepted.get(id) ?? []).filter(({ outcome }) => outcome === 'failed').length;
    const sent = kept.origins.filter((origin) => origin === id).length;
    if (sent === failures) continue;
    // The first run may have failed the job before the store lost its end.
    const [first] = (runs.get(`job:${id}`) ?? []).toSorted((a, b) => a.at - b.at);
    const at = first?.endAt ?? accepted.get(id)?.[0]?.at ?? kept.at;
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
