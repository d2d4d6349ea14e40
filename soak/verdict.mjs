// Flat or not: the median of the last quarter is compared with that of the second one. The first quarter is left to caches, compilers and
// logs that fill; medians, so that a sample in the middle of a fault says nothing.
const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];

/** For each column `{ before, after, most, flat }`; `flat` is undefined when a quarter has no sample, which is not a pass. */
export function verdictsOf(samples, columns, ms) {
  const quarter = (number, name) =>
    samples
      .filter((sample) => Math.min(3, Math.floor((4 * sample.ms) / ms)) === number)
      .map(({ values }) => values[name])
      .filter((value) => value !== undefined);
  return new Map(
    [...columns].map(([name, { share, slack }]) => {
      const [before, after] = [median(quarter(1, name)), median(quarter(3, name))];
      const most = before * (1 + share) + slack;
      return [name, { before, after, most, flat: before === undefined || after === undefined ? undefined : after <= most }];
    }),
  );
}
