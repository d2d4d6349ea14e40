// Processor time: of this process, and of a server, from /proc: it is nobody's child here, so `process.resourceUsage` does not see it.
import { readdirSync, readFileSync } from 'node:fs';

/** Milliseconds that this process has used, since `before` if that is given. */
export function ownCpuMs(before) {
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

/** Linux counts in hundredths of a second, whatever the kernel's own tick is. */
const TICK_MS = 10;

/** Milliseconds that a process, its children and its children that have ended have used. Undefined where there is no /proc. */
export function cpuOfFamily(pid) {
  const parent = statOf(pid);
  if (parent === undefined) return undefined;
  const children = readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .map(statOf)
    .filter((stat) => stat?.parent === pid);
  const ticks = children.reduce((sum, child) => sum + child.own, parent.own + parent.ended);
  return ticks * TICK_MS;
}

function statOf(pid) {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name, in parentheses, may hold spaces.
    const fields = text
      .slice(text.lastIndexOf(')') + 2)
      .split(' ')
      .map(Number);
    const [user, system, endedUser, endedSystem] = fields.slice(11, 15);
    return { parent: fields[1], own: user + system, ended: endedUser + endedSystem };
  } catch {
    return undefined;
  }
}
