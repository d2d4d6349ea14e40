// `npm run chaos -- --peer bullmq`: the peer, and Holdfast beside it with --compare, one after the other under the faults of one seed.
import { installPeers, versionOf } from '../../bench/peers.mjs';
import { readHistory } from '../history.mjs';
import { historyFolder } from '../history-folder.mjs';
import { judge } from '../judge/judge.mjs';
import { progressWith } from '../progress.mjs';
import { comparison } from './comparison.mjs';

const LOCKS = {
  default: 'both with their default options: locks of 30 s, looked after every 30 s, failed at the second stall',
  short: 'both with locks of 5 s, looked after every second, any number of stalls',
};

export async function compare(settings, quietMs) {
  installPeers();
  // They compile what they need: not before everything else is known to be there.
  const { run } = await import('../run.mjs');
  const { scenesWith } = await import('./scenes.mjs');
  const { peer, locks, seed, ms, keep, store } = settings;
  const scenes = scenesWith({ locks, store });
  const names = settings.compare ? [peer, 'holdfast'] : [peer];
  const runs = [];
  for (const name of names) {
    const history = historyFolder();
    await run(settings, history.folder, progressWith(settings, quietMs), scenes[name]);
    runs.push([name === peer ? `${peer} ${versionOf(peer)}` : name, judge(readHistory(history.folder))]);
    if (!keep) history.discard();
  }
  console.log(comparison(`${store}, ${ms / 60_000} min, seed ${seed}; ${LOCKS[locks]}`, runs));
  // What a peer does is counted, not condemned.
  return 0;
}
