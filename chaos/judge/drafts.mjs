// A job that was kept while its owner ran is added when the owner ends. Which of several adds at once came last is not known: one of those
// that may have been the last must be there.

/** Adds that ask to be kept, by their keys: the id that they ask for, when they were sent, and what they were told. */
function keepersOf(entries) {
  const keepers = new Map();
  for (const { event, at, who, unique = [], jobs = [] } of entries) {
    if (event === 'adding') for (const { key, id } of unique) keepers.set(key, { key, id, who, sentAt: at });
    if (event === 'added' || event === 'deduplicated') {
      for (const { key, id: jobId } of jobs) {
        const keeper = keepers.get(key);
        if (keeper !== undefined) Object.assign(keeper, { toldAt: at, owner: event === 'deduplicated' ? jobId : undefined });
      }
    }
  }
  return [...keepers.values()];
}

export function judgeDrafts(entries, { accepted, kept }, holds) {
  const keepers = keepersOf(entries);
  const there = new Set([...kept.keys(), ...holds.map(({ key }) => key)]);
  const violations = [];
  for (const { key, id, who, owner, sentAt, toldAt } of keepers) {
    if (owner === undefined || !ranThroughout(owner, sentAt, toldAt)) continue;
    const maybeLast = keepers.filter((other) => other.id === id && (other.toldAt ?? Number.POSITIVE_INFINITY) >= sentAt);
    if (maybeLast.some((other) => there.has(other.key))) continue;
    const text = `${key} was kept for job ${owner}, which has ended, and neither ${key} nor a later one was added`;
    violations.push({ rule: 'draft lost', text, at: toldAt, concerns: { ids: [owner], who: [who], from: sentAt, to: toldAt } });
  }
  return violations;

  /** True if the run that finished this job had begun before and ended after. */
  function ranThroughout(job, from, to) {
    const fences = (accepted.get(job) ?? []).map(({ fence }) => fence);
    return holds.some(
      ({ things, fence, at, endAt = 0 }) => things[0] === `job:${job}` && fences.includes(fence) && at < from && endAt > to,
    );
  }
}
