// The fenced resource: once it has seen a fence, nothing with a smaller one takes effect.
export function judgeWrites(entries) {
  const violations = [];
  const greatest = new Map();
  for (const { event, at, by, thing, fence, accepted } of entries) {
    if (event !== 'write' || !accepted) continue;
    const seen = greatest.get(thing);
    if (seen !== undefined && fence < seen.fence) {
      violations.push({
        rule: 'stale write accepted',
        text: `${thing}: a write of ${by} with fence ${fence} took effect after one of ${seen.by} with ${seen.fence}`,
        at,
        concerns: { writes: true, fences: [fence, seen.fence], who: [by, seen.by], from: seen.at, to: at },
      });
    } else greatest.set(thing, { fence, by, at });
  }
  return violations;
}
