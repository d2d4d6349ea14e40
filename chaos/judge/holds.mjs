// Of everything that can be held (a job, a key of jobs, a named lock, leadership) there is one holder at a time who believes in it.
// Two may act at once, but only when the one with the smaller fence had been told before the other began.

/** One for each time that a process acted as an owner, with the last moment at which it read its lock as held. */
export function holdsOf(entries) {
  const holds = [];
  const open = new Map();
  for (const entry of entries) {
    const { event, who, at, queue, fence } = entry;
    const believed = (held, lastHeld) => {
      const hold = open.get(`${who} ${held.queue} ${held.fence}`);
      if (hold !== undefined && lastHeld !== undefined) hold.lastHeld = Math.max(hold.lastHeld, lastHeld);
      return hold;
    };
    if (event === 'take') {
      const { things, held, key, first, group } = entry;
      const hold = { who, fence, things, queue, key, first, group, at, held, lastHeld: held ? at : Number.NEGATIVE_INFINITY };
      holds.push(hold);
      open.set(`${who} ${queue} ${fence}`, hold);
    }
    if (event === 'holds') for (const one of entry.held) believed(one, one.lastHeld);
    if (event === 'told') {
      const hold = believed(entry, entry.lastHeld);
      if (hold !== undefined) hold.toldAt ??= at;
    }
    if (event === 'end') {
      const hold = believed(entry, entry.lastHeld);
      if (hold !== undefined) hold.endAt = at;
    }
  }
  return holds;
}

export function judgeHolds(holds) {
  return [...twoHolders(holds), ...sameFence(holds), ...heldAgain(holds)];
}

function twoHolders(holds) {
  const violations = [];
  for (const [thing, ofThing] of byThing(holds)) {
    const falling = ofThing.toSorted((a, b) => b.fence - a.fence);
    // The one that began first of those with a greater fence.
    let earliest;
    for (const [index, hold] of falling.entries()) {
      const before = falling[index - 1];
      if (before !== undefined && before.fence > hold.fence && (earliest === undefined || before.at < earliest.at))
        earliest = before;
      if (earliest === undefined || earliest.fence === hold.fence || hold.lastHeld <= earliest.at) continue;
      const late = Math.round(hold.lastHeld - earliest.at);
      violations.push({
        rule: 'two holders',
        text: `${thing}: ${hold.who} (fence ${hold.fence}) read its lock as held ${late} ms after ${earliest.who} (fence ${earliest.fence}) had begun`,
        at: earliest.at,
        concerns: { fences: [hold.fence, earliest.fence], who: [hold.who, earliest.who], from: hold.at, to: hold.lastHeld },
      });
    }
  }
  return violations;
}

function sameFence(holds) {
  const violations = [];
  const seen = new Map();
  for (const hold of holds) {
    const name = `${hold.queue} ${hold.fence}`;
    const before = seen.get(name);
    seen.set(name, hold);
    if (before === undefined) continue;
    violations.push({
      rule: 'same fence',
      text: `${before.who} (${before.things.join(', ')}) and ${hold.who} (${hold.things.join(', ')}) both had fence ${hold.fence}`,
      at: hold.at,
      concerns: { fences: [hold.fence], who: [before.who, hold.who], from: before.at, to: hold.at },
    });
  }
  return violations;
}

/** A leader may: `isLeader` is false while the store does not answer, and true again when it does, within one term. */
function heldAgain(holds) {
  return holds
    .filter(({ things }) => !things[0].startsWith('leader:'))
    .filter(({ toldAt, lastHeld }) => toldAt !== undefined && lastHeld > toldAt)
    .map(({ who, fence, things, toldAt, lastHeld, at }) => ({
      rule: 'held again',
      text: `${things.join(', ')}: ${who} (fence ${fence}) was told that its lock is lost and read it as held ${Math.round(lastHeld - toldAt)} ms later`,
      at: toldAt,
      concerns: { fences: [fence], who: [who], from: at, to: lastHeld },
    }));
}

export function byThing(holds) {
  const things = new Map();
  for (const hold of holds) {
    for (const thing of hold.things) {
      const list = things.get(thing);
      if (list === undefined) things.set(thing, [hold]);
      else list.push(hold);
    }
  }
  return things;
}
