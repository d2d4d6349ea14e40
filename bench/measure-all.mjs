// Goes through the rounds. Within a round every case is run by all contestants one after the other, A B C A B C, so that a slow minute of
// the machine hits them alike and a round's figures can be compared with each other.
import { isDeepStrictEqual } from 'node:util';
import { contestantsFor } from './contestants.mjs';

/** Some drivers put the whole statement into it. */
const LONGEST_MESSAGE = 200;

/** @returns what was measured: rows with a list of values, one a round, for each contestant; and what failed */
export async function measureAll(measurements, settings, withPeers) {
  const table = new Map();
  const failures = [];
  const given = new Set();
  for (let round = 0; round < settings.rounds; round += 1) {
    for (const measurement of measurements) {
      if (measurement.ownRounds && round > 0) continue;
      for (const run of runsOf(measurement, settings, withPeers)) await carryOut(run, round);
    }
  }
  if (process.stderr.isTTY) process.stderr.write('\r\u001b[K');
  return { rows: [...table.values()], failures };

  async function carryOut(run, round) {
    const { measurement, store, contestant } = run;
    // Who is beyond the limit once, or fails, is not waited for again.
    const id = [measurement.name, store, contestant.id, run.index].join(' ');
    if (given.has(id)) return;
    say(`round ${round + 1} of ${settings.rounds}: ${measurement.name} on ${store}: ${contestant.label}`);
    try {
      for (const figure of await measurement.measure({ ...run, settings, rounds: settings.rounds })) {
        note(figure, run, round);
        if (figure.beyond) given.add(id);
      }
    } catch (error) {
      given.add(id);
      fail(run, error.message.split('\n')[0].slice(0, LONGEST_MESSAGE));
      if (process.env.BENCH_DEBUG) console.error(error);
    }
  }

  /** The same reason in several cases is told once. */
  function fail({ measurement, store, contestant }, message) {
    const failure = { measurement: measurement.name, store, contestant: contestant.label, kind: kindOf(contestant), message };
    if (!failures.some((known) => isDeepStrictEqual(known, failure))) failures.push(failure);
  }

  function note({ what, unit, better, value, values = [value], beyond = false }, { store, contestant }, round) {
    const key = `${store}\0${what}`;
    if (!table.has(key)) table.set(key, { store, what, unit, better, contestants: [] });
    const { contestants } = table.get(key);
    const { id, label, kind, removes } = contestant;
    let cell = contestants.find((each) => each.id === id);
    if (cell === undefined) contestants.push((cell = { id, label, kind, package: contestant.package, removes, values: [] }));
    values.forEach((each, index) => (cell.values[round + index] = each));
    if (beyond) cell.beyond = true;
  }
}

function* runsOf(measurement, settings, withPeers) {
  for (const store of settings.stores) {
    if (store === 'memory' && NOT_IN_MEMORY.has(measurement.name)) continue;
    const contestants = contestantsFor(store, measurement.name, withPeers).filter(
      ({ id }) => settings.contestants.includes(id) && (!measurement.oursOnly || id === 'holdfast'),
    );
    const cases = measurement.cases?.({ store, settings }) ?? [undefined];
    for (const [index, each] of cases.entries()) {
      for (const contestant of contestants) {
        const run = { measurement, store, contestant, case: each, index };
        if (measurement.fits?.(run) ?? true) yield run;
      }
    }
  }
}

/** Nobody but its own process reaches a store in memory, and finished jobs stay there. */
const NOT_IN_MEMORY = new Set(['recovery', 'blocked', 'endurance']);

/** A build without an option that is measured is no failure of what is there. */
function kindOf({ id, kind }) {
  return id.startsWith('holdfast-') ? 'option' : kind;
}

/** In a terminal the next line replaces this one. */
function say(line) {
  process.stderr.write(process.stderr.isTTY ? `\r\u001b[K${line}` : `${line}\n`);
}
