// What Linux tells about processes that are not our children: PostgreSQL's backends, Redis' forks.
import { readFileSync } from 'node:fs';

export function childrenOf(pid: number): number[] {
  return (read(`/proc/${pid}/task/${pid}/children`) ?? '').split(' ').filter(Boolean).map(Number);
}

export function isStopped(pid: number): boolean {
  return stateOf(pid) === 'T';
}

/** True for a zombie as well: it runs nothing and holds nothing any more. */
export function hasEnded(pid: number): boolean {
  const state = stateOf(pid);
  return state === undefined || state === 'Z' || state === 'X';
}

/** Sends a signal to a process that may have ended meanwhile. */
export function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

function stateOf(pid: number): string | undefined {
  return /^State:\s+(\w)/m.exec(read(`/proc/${pid}/status`) ?? '')?.[1];
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}
