export function spread(values) {
  const sorted = sort(values);
  return { median: middle(sorted), low: sorted[0], high: sorted.at(-1) };
}

export function median(values) {
  return middle(sort(values));
}

/** Of values that are sorted already. */
export function percentile(sorted, share) {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
}

function middle(sorted) {
  const half = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

function sort(values) {
  return [...values].sort((a, b) => a - b);
}
