// The families, from the replies of the store, compared with what it shows: a parent runs only when its children have ended or one of them
// released it, every end of a child counts once, no parent waits in vain, and each failure for good sends one letter.
// A store may deliver messages later, so what must happen is judged when nothing goes wrong any more, and what must not at once.

const STATES = ['pending', 'processed', 'failed', 'ignored'];
const EVERY_LINK = { states: STATES, limit: 1000 };
const EVERY_LETTER = { lists: ['waiting'], start: 0, end: -1, asc: true };
/** A message is delivered within this time when nothing goes wrong any more. */
const DELIVERED_MS = 2000;
/** The same if a failover has lost it: a sweep asks after the children of parents that have waited for a minute, every ten seconds. */
const REPAIRED_MS = 80_000;

export class FamilyBook {
  /** Set by a run with flows: when its last fault is over. Undefined: there are none, and nothing is read. */
  quietFrom;
  /** The queue of the letters. */
  letters;
  /** By the id of the parent: its queue, and the instructions of its children by their ids. */
  #parents = new Map();
  /** Jobs that send a letter when they fail. */
  #senders = new Set();
  /** Since when each thing is overdue. */
  #since = new Map();
  #world;
  #now;
  #store;
  #jobs;
  /** The book of the store before a failover. */
  #before;
  /** Children that a failover has lost. */
  #gone = new Set();

  constructor({ world, now, store, jobs }) {
    this.#world = world;
    this.#now = now;
    this.#store = store;
    this.#jobs = jobs;
  }

  /** A child that had ended may run again, and a child may be gone. What it has told its parent is true all the same. */
  takeOver(before) {
    this.#before = before;
  }

  /** This one, and that of the store before a failover. */
  get #books() {
    return this.#before === undefined ? [this] : [this, this.#before];
  }

  /** True when nothing goes wrong any more. */
  get isQuiet() {
    return this.quietFrom !== undefined && this.#now() > this.quietFrom;
  }

  /** A call has added these jobs. */
  added(queue, jobs, replies) {
    jobs.forEach(({ parents, waitsForChildren, deadLetter, ...job }, index) => {
      const { id, status } = replies[index];
      if (status !== 'added') return;
      if (waitsForChildren === true) this.#parents.set(id, { queue: job.queue ?? queue, children: new Map() });
      if (deadLetter !== undefined) this.#senders.add(id);
      for (const parent of parents ?? []) this.#parents.get(parent.id)?.children.set(id, parent.onFailure);
    });
  }

  /** Judges the jobs that a claim has granted. */
  claimed(jobs) {
    for (const { id } of jobs) {
      const parent = this.#parents.get(id);
      if (parent === undefined || this.#mayRun(parent)) continue;
      const open = [...parent.children.keys()].filter((child) => !this.#jobs.finished.has(child));
      this.#violate('no parent before its children', id, `${id} was granted, and ${open.join(', ')} had not ended`);
    }
  }

  /** Call it after every call that may have changed jobs. */
  async check() {
    if (this.quietFrom === undefined) return;
    for (const [id, parent] of this.#parents) await this.#checkParent(id, parent);
    // Letters of ends that are lost stay, and letters of ends that stay may be lost.
    if (this.#before === undefined) await this.#checkLetters();
  }

  /** True if all children have ended, or one has failed that lets its parent go on at once. */
  #mayRun({ children }) {
    const isOver = ([child, onFailure]) =>
      this.#gone.has(child) || this.#endsOf(child, onFailure).some((end) => end !== 'pending');
    const letsGo = ([child, onFailure]) =>
      onFailure?.release === 'now' && this.#books.some((book) => book.#jobs.finished.get(child)?.kind === 'failed');
    return [...children].every(isOver) || [...children].some(letsGo);
  }

  /** The state that the link of a child must come to. */
  #endOf(child, onFailure) {
    const kind = this.#jobs.finished.get(child)?.kind;
    if (kind === undefined) return 'pending';
    return kind === 'completed' ? 'processed' : (onFailure?.link ?? 'pending');
  }

  /** The same, by this book and by that before a failover. */
  #endsOf(child, onFailure) {
    return this.#books.map((book) => book.#endOf(child, onFailure));
  }

  /** True if a failover has lost the child. */
  async #isGone(child, queue) {
    if (this.#before === undefined) return false;
    const isThere = (await this.#store.jobs(queue, [child])).jobs[0] !== undefined || this.#store.underWay?.().has(child);
    if (!isThere) this.#gone.add(child);
    return !isThere;
  }

  /** True if the links of a parent are not there: it is on its way, its finish has removed it, or a failover has lost it. */
  #isAway(id, record) {
    if (record !== undefined) return false;
    return this.#before !== undefined || this.#jobs.removed.has(id) || this.#store.underWay?.().has(id) === true;
  }

  async #checkParent(id, { queue, children }) {
    const [record] = (await this.#store.jobs(queue, [id])).jobs;
    if (this.#isAway(id, record)) return;
    const { links, counts } = await this.#store.children(queue, id, EVERY_LINK);
    for (const state of STATES) {
      const there = links.filter((link) => link.state === state).length;
      if (counts[state] !== there)
        this.#violate('every end counts once', id, `${id} has ${there} links that are ${state}, and counts ${counts[state]}`);
    }
    const shown = new Map(links.map(({ child, state }) => [child.id, state]));
    for (const [child, onFailure] of children) {
      const expected = this.#endsOf(child, onFailure);
      const state = shown.get(child) ?? 'removed';
      const isLate = state === 'pending' && !expected.includes('pending');
      const mayBeGone = state === 'removed' && (await this.#isGone(child, this.#jobs.queues.get(child)));
      if (!isLate && !mayBeGone && !expected.includes(state))
        this.#violate(
          'every end counts once',
          child,
          `the link of ${child} is ${state}, and by all replies it is ${expected.join(' or ')}`,
        );
      if (this.#isOverdue(`${id} ${child}`, isLate))
        this.#violate('no parent waits in vain', id, `${child} has ended, and ${id} has not been told`);
    }
    const waits = record?.state === 'waiting-children';
    if (waits && counts.pending === 0) this.#violate('no parent waits in vain', id, `${id} waits for no child`);
    if (this.#isOverdue(id, waits && this.#mayRun({ children })))
      this.#violate('no parent waits in vain', id, `${id} waits although its children let it go`);
  }

  async #checkLetters() {
    const { jobs: letters } = await this.#store.jobs(this.letters, EVERY_LETTER);
    const sent = letters.map(({ origin }) => origin?.id);
    for (const id of this.#senders) {
      const count = sent.filter((origin) => origin === id).length;
      const { kind, isCancelled } = this.#jobs.finished.get(id) ?? {};
      const expected = kind === 'failed' && !isCancelled ? 1 : 0;
      if (count > expected || this.#isOverdue(`letter ${id}`, count < expected))
        this.#violate('one letter per failure', id, `${id} has sent ${count} letters, and must send ${expected}`);
    }
    const foreign = sent.find((id) => !this.#senders.has(id));
    if (letters.length > 0 && foreign !== undefined)
      this.#violate('one letter per failure', foreign, `${foreign} sends no letters, and one is there`);
  }

  #isOverdue(what, isOpen) {
    if (!isOpen) this.#since.delete(what);
    if (!isOpen) return false;
    const now = this.#now();
    if (!this.#since.has(what)) this.#since.set(what, now);
    const patience = this.#before === undefined ? DELIVERED_MS : REPAIRED_MS;
    return now - Math.max(this.#since.get(what), this.quietFrom) > patience;
  }

  #violate(invariant, job, text) {
    this.#world.violate({ invariant, text, job });
  }
}
