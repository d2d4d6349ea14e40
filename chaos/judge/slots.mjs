// A schedule makes one job for each of its slots, also if its workers die between two of them, and goes on when the faults are over.

/** The slots of each schedule by their moments, and what became of them. */
function schedulesOf(entries) {
  const schedules = new Map();
  const of = (name) => {
    const known = schedules.get(name) ?? { name, everyMs: undefined, slots: new Map(), ends: [] };
    schedules.set(name, known);
    return known;
  };
  for (const { event, at, who, ...entry } of entries) {
    if (event === 'scheduled') Object.assign(of(entry.schedule), { everyMs: entry.everyMs, who, madeAt: at });
    if (event === 'schedule') of(entry.schedule).ends.push({ at, state: entry.state, lateMs: entry.lateMs });
    if (event !== 'slot') continue;
    const split = entry.id.lastIndexOf(':');
    const { slots } = of(entry.id.slice(0, split));
    const moment = Number(entry.id.slice(split + 1));
    const slot = slots.get(moment) ?? { id: entry.id, moment, made: 0, at };
    slots.set(moment, slot);
    // An upsert replaces a job that has not started; the new one may have the same slot.
    slot.made += entry.change === 'made' ? 1 : -1;
    slot.at = at;
  }
  return [...schedules.values()];
}

export function judgeSlots(entries, jobs) {
  const isOver = jobs.drained !== undefined;
  return schedulesOf(entries).flatMap((schedule) => [
    ...twice(schedule),
    ...missing(schedule),
    ...(isOver ? [...unfinished(schedule, jobs), ...stopped(schedule)] : []),
  ]);
}

function twice({ slots }) {
  return [...slots.values()]
    .filter(({ made }) => made > 1)
    .map(({ id, made, at }) => ({
      rule: 'slot twice',
      text: `the store made ${made} jobs for the slot ${id}`,
      at,
      concerns: { ids: [id], from: at, to: at },
    }));
}

function missing({ name, everyMs, slots }) {
  const made = [...slots.values()].filter((slot) => slot.made > 0).toSorted((a, b) => a.moment - b.moment);
  return made.flatMap(({ id, moment, at }, index) => {
    const before = made[index - 1];
    const gap = before === undefined || everyMs === undefined ? 0 : Math.round((moment - before.moment) / everyMs) - 1;
    if (gap <= 0) return [];
    const text = `${name} made no job for ${gap} slots between ${before.moment} and ${moment}`;
    return [{ rule: 'slot missing', text, at, concerns: { ids: [before.id, id], from: before.at, to: at } }];
  });
}

function unfinished({ slots }, { accepted, kept }) {
  return [...slots.values()]
    .filter(({ id, made }) => made > 0 && !accepted.has(id) && !kept.has(id))
    .map(({ id, at }) => ({
      rule: 'slot lost',
      text: `the job of the slot ${id} was made, and is neither finished nor there`,
      at,
      concerns: { ids: [id], from: at, to: at },
    }));
}

function stopped({ name, ends, madeAt = 0, who }) {
  const last = ends.at(-1);
  if (last?.state === 'running' && last.lateMs === 0) return [];
  const at = last?.at ?? madeAt;
  const how = last === undefined ? 'was never seen again' : `is ${last.state}, and ${last.lateMs} ms late, after the calm`;
  return [
    { rule: 'schedule stopped', text: `${name} ${how}`, at, concerns: { who: who === undefined ? [] : [who], from: at, to: at } },
  ];
}

/** How many slots have a job. */
export function countSlots(entries) {
  return schedulesOf(entries).reduce((sum, { slots }) => sum + [...slots.values()].filter(({ made }) => made > 0).length, 0);
}
