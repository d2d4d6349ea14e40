// Does what the plan says goes wrong, and starts again what ended.

/** Faults that strike no process. */
const OF_THE_STORE = new Set(['store pauses', 'outage', 'failover', 'revoke', 'cancel']);

export class Nemesis {
  /** How often each kind of fault was done. */
  counts = {};
  #crew;
  #history;

  constructor(crew, history) {
    this.#crew = crew;
    this.#history = history;
  }

  do(fault) {
    const member = this.#crew.members[fault.process];
    const { process } = member;
    if (!OF_THE_STORE.has(fault.what) && (process.isDead || process.isFrozen || member.leaves)) return;
    this.#history.note('nemesis', describe(fault, process.name), { always: true });
    const name = fault.what === 'calls' ? fault.kind : fault.what === 'cut' ? `${fault.mode} connection` : fault.what;
    this.counts[name] = (this.counts[name] ?? 0) + 1;
    switch (fault.what) {
      case 'crash':
        process.crash();
        return member.startAgain(fault.restartMs);
      case 'exit':
        process.exit(fault.isException);
        return member.startAgain(fault.restartMs);
      case 'deploy':
        return member.leave(fault.restartMs);
      case 'freeze':
        process.freeze(fault.ms);
        if (fault.deafMs > 0) for (const link of process.links) link.cut('silent', fault.deafMs, { afterMs: fault.ms });
        return;
      case 'hiccup':
        return process.loop.hold(fault.ms);
      case 'clock step':
        return process.stepWall(fault.ms);
      case 'cut':
        for (const link of linksOf(process, fault.part)) link.cut(fault.mode, fault.ms, { server: fault.server });
        return;
      case 'calls':
        for (const link of linksOf(process, fault.part)) link.strike(fault);
        return;
      case 'ambush':
        return this.#waitFor(fault, process);
      case 'thread dies':
        return process.thread?.die(new Error('the thread was ended'));
      case 'store pauses':
        return this.#crew.server.pause(fault.ms, fault.server);
      case 'outage':
        for (const { process: each } of this.#crew.members)
          for (const link of each.links) link.cut('refused', fault.ms, { server: fault.server });
        return;
      case 'failover':
        return this.#crew.server.failOver(fault.server);
      case 'revoke':
        return this.#crew.revoke(fault.job);
      case 'cancel':
        return this.#crew.cancel(fault.job);
    }
  }

  #waitFor(fault, { links }) {
    let isDone = false;
    const strike = () => {
      if (!isDone) this.do({ ...fault, what: fault.deed });
      isDone = true;
    };
    for (const link of links) link.ambush(fault.verb, strike, fault.lateMs);
  }
}

/** The first is of the process, the others are of its threads. */
function linksOf({ links }, part) {
  if (part === 'both' || links.length === 1) return links;
  return part === 'main' ? links.slice(0, 1) : links.slice(1);
}

export function describe({ what, at, ms, deafMs, kind, verb, mode, part, count, restartMs, isException, job, server }, name) {
  const whole = (value) => `${Math.round(value)} ms`;
  const store = server === 1 ? 'store 2' : 'store';
  const line = server === undefined ? name : `${name} to the ${store}`;
  const place = part === undefined || part === 'both' ? line : `${line} (${part})`;
  const when = `at ${whole(at)}: `;
  switch (what) {
    case 'calls':
      return `${when}${place}: the next ${count} ${verb ?? 'any'} calls have a ${kind}${kind.startsWith('slow') ? ` (${whole(ms)})` : ''}`;
    case 'ambush':
      return `${when}somebody waits for a ${verb} of ${name}, to strike between the store's work and its reply`;
    case 'cut':
      return `${when}${place}: all calls are ${mode} for ${whole(ms)}`;
    case 'store pauses':
      return `${when}the ${store} pauses for ${whole(ms)}`;
    case 'outage':
      return `${when}no process reaches the ${store} for ${whole(ms)}`;
    case 'failover':
      return `${when}a replica takes over, without the last ${whole(ms)} of what the ${store} did`;
    case 'revoke':
      return `${when}an operator takes job ${job} away`;
    case 'cancel':
      return `${when}an operator cancels ${job}`;
    case 'freeze':
      return `${when}${name} is frozen for ${whole(ms)}${deafMs > 0 ? `, and hears nothing for another ${whole(deafMs)}` : ''}`;
    case 'exit':
      return `${when}${name} exits${isException ? ' of an exception' : ''}, comes back after ${whole(restartMs)}`;
    default:
      return `${when}${name}: ${what}${ms === undefined ? '' : ` of ${whole(ms)}`}${restartMs === undefined ? '' : `, comes back after ${whole(restartMs)}`}`;
  }
}
