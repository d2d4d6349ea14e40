// The clock on the wall of a time zone: which time it shows at a moment, and at which moment it shows a time first. Times on the wall are
// in ms, as if they were UTC.

const DAY_MS = 86_400_000;

export class WallClock {
  readonly #format: Intl.DateTimeFormat;

  constructor(timeZone: string) {
    const number = 'numeric';
    this.#format = new Intl.DateTimeFormat('en', {
      timeZone,
      calendar: 'iso8601',
      hourCycle: 'h23',
      ...{ year: number, month: number, day: number, hour: number, minute: number, second: number },
    });
  }

  /** Returns what the clock shows at a moment. */
  at(time: number): number {
    const fields: Record<string, number> = {};
    for (const { type, value } of this.#format.formatToParts(time)) fields[type] = Number(value);
    const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = fields;
    return Date.UTC(year, month - 1, day, hour, minute, second) + (((time % 1000) + 1000) % 1000);
  }

  /** Returns the first moment at which the clock shows this time, or a later one if it skips the time. */
  first(wall: number): number {
    let early = wall - Math.max(this.#aheadAt(wall - DAY_MS), this.#aheadAt(wall + DAY_MS));
    if (this.at(early) >= wall) return early;
    let late = wall - Math.min(this.#aheadAt(wall - DAY_MS), this.#aheadAt(wall + DAY_MS));
    // Between the two the clock skips the time, or shows it after it was set back.
    while (late - early > 1) {
      const middle = Math.floor((early + late) / 2);
      if (this.at(middle) < wall) early = middle;
      else late = middle;
    }
    return late;
  }

  /** Returns by how much the clock is ahead of UTC. */
  #aheadAt(time: number): number {
    return this.at(time) - time;
  }
}
