// A connection whose renewals are noted in a file, with who made them: the event loop or the lock thread. See fixtures/watched-store.mjs.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Connection } from 'holdfast';
import { onTestFinished } from 'vitest';
import Database from 'better-sqlite3';
import { detour } from '../servers/detour.js';
import { fixture } from '../processes/worker-process.js';
import type { Engine, Scene } from '../scenes/scene.js';
import { until } from '../wait/until.js';

export interface NotedRenewal {
  /** Made by the lock thread. */
  thread: boolean;
  failed: boolean;
  /** All of one call. */
  sessions: string[];
}

export interface Watched {
  connection: Connection;
  renewals(): NotedRenewal[];
  /** Resolves when the latest renewal is one of the thread, and the store has answered it. */
  threadRenews(): Promise<unknown>;
}

export interface WatchedOptions {
  /** Files whose existence makes the thread's side fail: it cannot be opened, or does not answer. */
  closed?: string;
  cut?: string;
  /** Another way to the store, for the thread alone. */
  threadConnection?: Connection;
  /** The thread hears of its renewals so much later. */
  slowMs?: number;
}

export function watched({ folder, url }: Pick<Scene, 'folder' | 'url'>, options: WatchedOptions = {}): Watched {
  const log = join(folder, 'renewals');
  const renewals = (): NotedRenewal[] => {
    if (!existsSync(log)) return [];
    // The last line may be half written.
    const lines = readFileSync(log, 'utf8').split('\n').slice(0, -1);
    return lines.map((line) => JSON.parse(line) as NotedRenewal);
  };
  return {
    connection: { module: fixture('watched-store.mjs'), export: 'open', options: { url, log, ...options } },
    renewals,
    threadRenews: () =>
      until('the thread renews', async () => {
        const last = renewals().at(-1);
        return last?.thread === true && !last.failed;
      }),
  };
}

export interface TroubledThread extends Watched {
  /** All that the thread asks goes wrong below the driver, until heal(). */
  strike(): void;
  heal(): void;
}

/**
 * A lock thread whose own connection meets a fault below the driver, while the event loop's connection is well. Behind a network
 * replies are lost, and their connections; a SQLite file is held by another writer.
 */
export async function troubledThread(engine: Engine, scene: Scene): Promise<TroubledThread> {
  if (engine === 'sqlite') {
    const writer = new Database(scene.url.replace('sqlite:', ''));
    onTestFinished(() => void writer.close());
    return { ...watched(scene), strike: () => void writer.exec('BEGIN IMMEDIATE'), heal: () => void writer.exec('COMMIT') };
  }
  const { proxy, connection: threadConnection } = await detour(engine, scene.url);
  return {
    ...watched(scene, { threadConnection }),
    strike: () => proxy.dropReplies({ times: Number.POSITIVE_INFINITY }),
    heal: () => proxy.heal(),
  };
}
