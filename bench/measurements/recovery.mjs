// From the SIGKILL of a worker process to the moment when its job starts in another one, both with default options. Who needs longer than
// the limit is not waited for.
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { now } from '../clock.mjs';
import { withPlace } from '../places.mjs';
import { withActors } from '../stage.mjs';

export const recovery = {
  name: 'recovery',
  measure: ({ store, contestant, settings }) =>
    withPlace(store, (place) =>
      withActors(async (start) => {
        const victim = await start(contestant, place);
        const started = once(victim, 'started');
        await victim.call('holdForever');
        await victim.call('addOne');
        await started;
        const survivor = await start(contestant, place);
        const restarted = once(survivor, 'started');
        await survivor.call('holdForever');
        // Not in step with anybody's schedule.
        await sleep(500 + Math.random() * 1500);
        const killedAt = now();
        await victim.kill();
        const line = { what: 'SIGKILL to start elsewhere', unit: 's', better: 'less' };
        const timer = new AbortController();
        const late = sleep(settings.recoveryMs, undefined, { signal: timer.signal }).catch(() => undefined);
        const reply = await Promise.race([restarted, late]);
        timer.abort();
        if (reply === undefined) return [{ ...line, value: settings.recoveryMs / 1000, beyond: true }];
        return [{ ...line, value: (reply[0].at - killedAt) / 1000 }];
      }),
    ),
};
