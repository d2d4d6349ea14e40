// What happened in a run, for people. Runs that go well keep none: a failing seed is run again, and only then every line is written down.

export class History {
  lines = [];
  #world;

  attach(world) {
    this.#world = world;
  }

  /**
   * `about`: { jobs, names, sessions } that the line concerns; `always` for what is told whatever was violated,
   * `routine` (of what) for what happens all the time.
   */
  note(who, text, about = {}) {
    this.lines.push({ at: this.#world.now, who, text, about });
  }
}

export const NO_HISTORY = { attach: () => undefined, note: () => undefined, lines: [] };

/** All of it, or with a violation only the faults and what concerns the job, the name or the session that was violated. */
export function tell({ lines }, violation) {
  const chosen = violation === undefined ? lines : withoutRoutine(lines.filter(concerns(violation, lines)));
  return chosen.map(({ at, who, text }) => `${at.toFixed(1).padStart(9)} ms  ${who.padEnd(8)}  ${text}`);
}

/** Of renewals that say nothing new, the last one before something else happens is enough. */
function withoutRoutine(lines) {
  const renewed = new Set();
  const kept = lines.toReversed().filter(({ who, about: { routine } }) => {
    if (routine === undefined) renewed.clear();
    const isTold = routine !== undefined && renewed.has(`${who} ${routine}`);
    if (routine !== undefined) renewed.add(`${who} ${routine}`);
    return !isTold;
  });
  return kept.reverse();
}

function concerns({ job, name, session }, lines) {
  if ((job ?? name ?? session) === undefined) return () => true;
  const isNear = ({ about: { jobs, names } }) => jobs?.includes(job) || names?.includes(name);
  // Those that have owned it at any time.
  const sessions = new Set(lines.filter(isNear).flatMap(({ about }) => about.sessions ?? []));
  if (session !== undefined) sessions.add(session);
  return (line) => line.about.always === true || isNear(line) || line.about.sessions?.some((id) => sessions.has(id));
}
