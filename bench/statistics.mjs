export function spread(values) {
  const sorted = [...values].sort((a, b) => a - b);
  return { median: percentile(sorted, 0.5), low: sorted[0], high: sorted.at(-1) };
}

/** Of values that are sorted already. */
export function percentile(sorted, share) {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
}
