/** Like those of real jobs: about 100 bytes. `n` tells jobs apart. */
export function payload(n) {
  return { n, user: 4711, mail: 'someone@example.com', template: 'welcome', at: '2026-01-01T00:00:00.000Z' };
}

export function payloads(count, from = 0) {
  return Array.from({ length: count }, (_, n) => payload(from + n));
}
