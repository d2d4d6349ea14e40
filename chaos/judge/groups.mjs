// Of each group, no more handlers than its concurrency allows read their locks as held at the same moment.
import { GROUP_CONCURRENCY } from '../groups.mjs';

export function judgeGroups(holds, most = GROUP_CONCURRENCY) {
  return [...byGroup(holds)].flatMap(([group, runs]) => overLimit(group, runs, most));
}

export function countGrouped(holds) {
  return holds.filter(({ group }) => group !== undefined).length;
}

/** Runs that believed in their locks from `at` to `lastHeld`, in the order in which they began. */
function byGroup(holds) {
  const groups = new Map();
  for (const hold of holds) {
    if (hold.group === undefined || hold.lastHeld < hold.at) continue;
    groups.set(hold.group, [...(groups.get(hold.group) ?? []), hold]);
  }
  return groups;
}

function overLimit(group, runs, most) {
  const violations = [];
  let believing = [];
  for (const run of runs.toSorted((a, b) => a.at - b.at)) {
    believing = believing.filter(({ lastHeld }) => lastHeld > run.at);
    believing.push(run);
    if (believing.length <= most) continue;
    const fences = believing.map(({ fence }) => fence);
    violations.push({
      rule: 'group over its limit',
      text: `${group}: ${believing.map(({ who, fence }) => `${who} (fence ${fence})`).join(', ')} held jobs of it at the same moment, and ${most} may`,
      at: run.at,
      concerns: { fences, who: believing.map(({ who }) => who), from: Math.min(...believing.map(({ at }) => at)), to: run.at },
    });
  }
  return violations;
}
