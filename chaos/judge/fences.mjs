// Fences grow, also when a failover has lost the last of them: whoever begins well after a promotion has a greater one than everybody who
// began before it.
const SETTLED_MS = 15_000;

export function judgeFences(entries, holds) {
  const violations = [];
  for (const { at: promotedAt } of entries.filter(({ event }) => event === 'promoted')) {
    for (const queue of new Set(holds.map((hold) => hold.queue))) {
      const ofQueue = holds.filter((hold) => hold.queue === queue);
      const greatest = ofQueue
        .filter(({ at }) => at < promotedAt)
        .reduce((most, hold) => (hold.fence > (most?.fence ?? 0) ? hold : most), undefined);
      // A process that was frozen since before begins late with an old fence, and knows that it has lost it.
      const behind = ofQueue.find(
        ({ at, held, fence }) => held && at > promotedAt + SETTLED_MS && fence <= (greatest?.fence ?? 0),
      );
      if (behind === undefined) continue;
      violations.push({
        rule: 'fence went back',
        text: `${behind.who} began with fence ${behind.fence} after a promotion, and ${greatest.who} had ${greatest.fence} before it`,
        at: behind.at,
        concerns: { fences: [behind.fence, greatest.fence], who: [behind.who, greatest.who], from: greatest.at, to: behind.at },
      });
    }
  }
  return violations;
}
