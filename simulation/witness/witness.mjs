// What handlers, holders and leaders believe and what people are told, against the books of the store. It says when one of the invariants
// does not hold. It must never change anything.
import { Books } from './books.mjs';
import { Endings } from './endings.mjs';
import { Handlers } from './handlers.mjs';
import { Trust } from './trust.mjs';

const LEADER_LOCK = 'holdfast:leader';

export class Witness {
  trust;
  handlers;
  endings;
  /** Of the store that is asked now. */
  books;
  /** Of all copies. */
  allBooks = [];
  #world;
  #history;
  #queue;
  #before;

  constructor({ world, queue, history, random }) {
    this.#world = world;
    this.#queue = queue;
    this.#history = history;
    this.trust = new Trust(world, history, random);
    const isOwner = (id, token) => this.books.jobs.owners.get(id)?.token === token;
    this.handlers = new Handlers(world, isOwner);
    this.endings = new Endings(world, isOwner);
  }

  /** Asks all that believe in something, or wait for something. */
  look() {
    this.trust.look();
    this.handlers.look();
    this.endings.look();
  }

  /** Books for a copy of the store; the first one is asked, the others follow it. */
  booksFor(store, time) {
    const isReplica = this.books !== undefined;
    const books = new Books({
      world: this.#world,
      store,
      time,
      queue: this.#queue,
      history: this.#history,
      isReplica,
      // A job that an operator took away runs on until its session hears of it.
      onJob: (id, token) => this.trust.granted(id, token, (run) => books.jobs.isRevoked(run.token)),
      // A leader's next term is its own: it is asked about leading, not about one term.
      onCancel: (token) => this.handlers.cancelled(token),
      onName: (name, token) =>
        this.trust.granted(name, token, ({ process }) => name === LEADER_LOCK && process === books.holderOf(name)),
    });
    this.books ??= books;
    this.allBooks.push(books);
    return books;
  }

  /**
   * A replica has taken over which had not heard of everything: renewals are lost, so somebody may be let in before whoever was there knows.
   * Fences and tokens must hold all the same.
   */
  async tookOver(books) {
    this.#before = this.books;
    this.books = books;
    this.trust.isJudged = false;
    await books.takeOver(this.#before);
  }

  /** What was acknowledged by the store that is gone now, and never reached its replica, is lost. */
  acknowledged({ id }) {
    const { jobs } = this.books;
    if (this.#before === undefined || jobs.isKept(id)) jobs.acknowledged.add(id);
  }

  /** A handler runs; answers how to tell that it has ended, and whether because it was told to stop. */
  runs(job, process, signal) {
    const { lock, id } = job;
    const { jobs } = this.books;
    const what = { job: id };
    this.#history.note(process.name, `runs ${id}`, { jobs: [id] });
    // One that an operator has taken away meanwhile hears of it with its next renewal.
    const current = jobs.isRevoked(lock.token) ? undefined : jobs.owners.get(id)?.token;
    const ended = this.trust.began({ what, token: lock.token, process, isHeld: () => lock.held }, current);
    const isSilent = this.handlers.began(job, process, signal);
    return (hasStopped) => {
      isSilent();
      this.endings.ended(id, lock.token, process.thread !== undefined);
      if (!hasStopped) this.books.jobs.ended.add(lock.token);
      ended();
    };
  }

  /** Somebody works under a name. */
  holds(lock, process) {
    const what = { name: lock.name };
    const current = this.books.names.holders.get(lock.name)?.token;
    return this.trust.began({ what, token: lock.token, process, isHeld: () => lock.held }, current);
  }

  /** Somebody stands for election for as long as it lives. */
  stands(leader, process) {
    const isHeld = () => this.books.holderOf(LEADER_LOCK) !== process && leader.isLeader;
    this.trust.began({ what: { name: LEADER_LOCK }, token: undefined, process, isHeld }, undefined);
  }

  toldCompleted(process, { id }, token) {
    const isTrue = (books) => {
      const finish = books?.jobs.finished.get(id);
      return finish?.kind === 'completed' && finish.token === token;
    };
    if (isTrue(this.books) || isTrue(this.#before)) return;
    const text = `${process.name} was told that ${id} is completed by ${token}, and it is not`;
    this.#world.violate({ invariant: 'told only what is true', text, job: id });
  }

  /** The product has emitted an error. A mistake of a program is none of its errors. */
  heardOf(process, error) {
    if (!(error instanceof TypeError) && !(error instanceof ReferenceError)) return;
    this.#world.violate({ invariant: 'no uncaught error', text: `${process.name} got ${error.stack ?? error.message}` });
  }

  /** More handlers run in a process than there are slots. */
  tooMany(process, running, { id }) {
    this.#world.violate({ invariant: 'slots are kept', text: `${process.name} runs ${running} jobs at once`, job: id });
  }
}
