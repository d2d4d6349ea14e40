// The named locks of the model: the holder of each name, and its lock waiters.
import assert from 'node:assert/strict';
import type { LockGrant } from '../../store/contract/index.js';
import { only } from './expect.js';
import type { Random } from './random.js';
import type { Scene } from './scene.js';

const NAMES = ['x', 'y', 'z'];
const FAR_MS = 3_600_000;

interface Wisher {
  token: string;
  session: string;
}

interface ModelName {
  holder?: Wisher;
  line: Wisher[];
}

export interface ModelSessions {
  readonly living: ReadonlyMap<string, unknown>;
  /** Asserts that a fence is greater than every earlier one. */
  fenceGrew(fence: number): void;
}

export class ModelNames {
  readonly #random: Random;
  readonly #sessions: ModelSessions;
  readonly #names = new Map<string, ModelName>(NAMES.map((name) => [name, { line: [] }]));
  #tokens = 0;

  constructor(random: Random, sessions: ModelSessions) {
    this.#random = random;
    this.#sessions = sessions;
  }

  /** Sends a new lock request or repeats an earlier one, for a living or an unknown session. */
  async wish(scene: Scene, by?: string): Promise<void> {
    const name = this.#random.pick(NAMES) ?? assert.fail();
    const { holder, line } = this.#name(name);
    const session = by ?? this.#random.pick([...this.#sessions.living.keys(), 'no-session']) ?? 'no-session';
    const fresh: Wisher = { token: `n${(this.#tokens += 1)}`, session };
    const known = [...line, ...(holder === undefined ? [] : [holder])];
    const wisher = by === undefined && this.#random.chance(2) ? (this.#random.pick(known) ?? fresh) : fresh;
    await this.#ask(scene, name, wisher, this.#random.chance(4) ? 0 : FAR_MS);
  }

  async letGo(scene: Scene): Promise<void> {
    const name = this.#random.pick(NAMES) ?? assert.fail();
    const known = this.#name(name);
    const token = this.#random.pick([known.holder, ...known.line])?.token ?? 'unknown';
    const expected = this.#drop(known, (wisher) => wisher.token === token);
    assert.deepEqual(await scene.store.letGo(scene.queue, [{ name, token }]), [expected > 0 ? 'done' : 'missing']);
  }

  /** Call it when a session has expired, was closed or swept: its locks are free and its places are lost. */
  died(session: string): void {
    for (const known of this.#names.values()) this.#drop(known, (wisher) => wisher.session === session);
  }

  async compare({ store, queue }: Scene): Promise<void> {
    const seen = (await store.locks(queue, { names: NAMES })).map((info) => info && [info.token, info.session, info.waiting]);
    const known = [...this.#names.values()].map(({ holder, line }) => holder && [holder.token, holder.session, line.length]);
    assert.deepEqual(seen, known, 'who holds each name, and how many wait for it');
  }

  /** Lets every lock waiter take the lock, in the order of the line. */
  async drain(scene: Scene): Promise<void> {
    for (const [name, known] of this.#names) {
      for (let next = known.holder ?? known.line[0]; next !== undefined; next = known.line[0]) {
        await this.#ask(scene, name, next, FAR_MS);
        assert.equal(known.holder, next, `${next.token} has its turn`);
        assert.deepEqual(await scene.store.letGo(scene.queue, [{ name, token: next.token }]), ['done']);
        delete known.holder;
      }
    }
  }

  async #ask(scene: Scene, name: string, wisher: Wisher, keepPlaceMs: number): Promise<void> {
    const wish = { name, ...wisher, keepPlaceMs };
    const ask = async (): Promise<LockGrant> => only(await scene.store.acquire(scene.queue, [wish]));
    const grant = await ask();
    this.#check(this.#name(name), wisher, keepPlaceMs, grant);
    if (keepPlaceMs > 0 && this.#random.chance(3)) {
      const { endsInMs: _, ...again } = await ask();
      const { endsInMs: __, ...first } = grant;
      assert.deepEqual(again, first, 'repeated');
    }
  }

  /** Checks the reply to a lock request, and applies it to the model. */
  #check(known: ModelName, wisher: Wisher, keepPlaceMs: number, { status, fence, ahead }: LockGrant): void {
    const alive = this.#sessions.living.has(wisher.session);
    const place = known.line.indexOf(wisher);
    const expected = place === -1 ? known.line.length : place;
    if (!alive) {
      assert.equal(status, 'gone');
    } else if (known.holder === wisher) {
      assert.equal(status, 'held');
    } else if (known.holder === undefined && expected === 0) {
      assert.equal(status, 'held', 'a free lock goes to the first in line');
      this.#sessions.fenceGrew(fence ?? 0);
      known.holder = wisher;
      if (place !== -1) known.line.shift();
    } else {
      assert.deepEqual([status, ahead], ['taken', expected]);
      if (place === -1 && keepPlaceMs > 0) known.line.push(wisher);
      if (place !== -1 && keepPlaceMs === 0) known.line.splice(place, 1);
    }
  }

  #drop(known: ModelName, which: (wisher: Wisher) => boolean): number {
    const before = known.line.length + (known.holder === undefined ? 0 : 1);
    known.line = known.line.filter((wisher) => !which(wisher));
    if (known.holder !== undefined && which(known.holder)) delete known.holder;
    return before - known.line.length - (known.holder === undefined ? 0 : 1);
  }

  #name(name: string): ModelName {
    return this.#names.get(name) ?? assert.fail(`the model knows no name ${name}`);
  }
}
