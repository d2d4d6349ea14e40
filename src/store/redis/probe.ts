// The suspicion check: finds connections that vouched for sessions and are gone, and suspects those sessions. It may shorten a session to
// its grace period, but must never end one.
import { isRetryable } from '../../errors.js';
import type { ProbeReply } from '../contract/index.js';
import type { Client } from './driver/driver.js';
import type { Link } from './driver/link.js';
import type { Engine } from './driver/engine.js';

/** Connections that one command looks for: this takes Redis about 1 ms. */
const ASKED_AT_ONCE = 500;

export async function probe({ run, link, relays }: Engine, queue: string): Promise<ProbeReply> {
  type Raw = [sessions: number, dueInMs: number, presences: string[], undone?: number, kin?: string[]];
  const [sessions, dueInMs, presences, undone, kin = []] = (await run('probe', queue, [])) as Raw;
  const gone = presences.length === 0 ? [] : await findGone(link, new Set(presences));
  const due = gone.length === 0 ? dueInMs : ((await run('suspect', queue, gone)) as number);
  const reply: ProbeReply = due < 0 ? { sessions } : { sessions, dueInMs: due };
  if (undone === 1 || (kin.length > 0 && (await relays.anyTo(queue, kin)))) reply.undone = true;
  return reply;
}

/** Returns the connections that their own server does not list. If a server cannot be asked, none of its connections count as gone. */
async function findGone(link: Link, presences: Set<string>): Promise<string[]> {
  const servers = link.servers();
  const found = await Promise.all(servers.map((server) => goneFrom(link, server, presences)));
  return found.flat();
}

async function goneFrom(link: Link, server: Client, presences: Set<string>): Promise<string[]> {
  try {
    return await askServer(link, server, presences);
  } catch (error) {
    // If the Redis user lacks the right to ask, there is no crash hint.
    if (isRetryable(error)) throw error;
    return [];
  }
}

async function askServer(link: Link, server: Client, presences: Set<string>): Promise<string[]> {
  const run = await runOf(link, server);
  const ours = [...presences].filter((presence) => run !== undefined && presence.startsWith(`${run}:`));
  if (run === undefined || ours.length === 0) return [];
  const ids = ours.map((presence) => presence.slice(run.length + 1));
  const living = new Set<string>();
  for (let first = 0; first < ids.length; first += ASKED_AT_ONCE) {
    const list = String(await link.ask(server, 'client', ['LIST', 'ID', ...ids.slice(first, first + ASKED_AT_ONCE)]));
    for (const [, id] of list.matchAll(/^id=(\d+) /gm)) living.add(`${run}:${id}`);
  }
  return ours.filter((presence) => !living.has(presence));
}

/** The run id of each client's server. It can be cached, because a client is one connection, which ends with the run of its server. */
const runs = new WeakMap<Client, Promise<string | undefined>>();

async function runOf(link: Link, server: Client): Promise<string | undefined> {
  const asked = runs.get(server) ?? link.ask(server, 'info', ['server']).then((info) => /run_id:(\w+)/.exec(String(info))?.[1]);
  runs.set(server, asked);
  try {
    return await asked;
  } catch (error) {
    runs.delete(server);
    throw error;
  }
}
