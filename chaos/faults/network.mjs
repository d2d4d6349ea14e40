// What happens between a process and the server.
import { ABOUT_A_LOCK, LOCK_MS, SHORTER_THAN_A_LOCK } from '../lock-times.mjs';
import { within } from '../nemesis.mjs';

const EVERYBODY = 'everybody';
const LINE = 'line of ';

export function networkFaults(crew, ways) {
  const line = (random) => `${LINE}${random.of(crew.names())}`;
  const holder = (random) => `${LINE}${random.of(crew.names('worker', 'leader', 'locker'))}`;
  const everybody = () => EVERYBODY;
  const nameOf = (target) => (target === EVERYBODY ? undefined : target.replace(LINE, ''));
  const disturbed = (disturb) => (target, random) => {
    const which = target === EVERYBODY ? 'both' : random.of(['main', 'thread', 'both', 'both']);
    for (const proxy of ways.of(nameOf(target), which)) disturb(proxy, random);
  };
  const heal = (target) => ways.of(nameOf(target)).forEach((proxy) => proxy.heal());
  const fault = (kind, weight, disturb, lasts, target = line) => ({
    ...{ kind, weight, target, strike: disturbed(disturb) },
    ...(lasts === undefined ? {} : { lasts: within(lasts), end: heal }),
  });
  const cut = (proxy, random) => proxy.cut(random.of(['reset', 'end']));
  const swallow = (proxy, random) => proxy.swallow(random.of(['both', 'both', 'requests', 'replies']));
  const delay = (proxy, random) => proxy.delay(random.between(20, 1200));
  const cutOff = (proxy) => {
    proxy.abandon();
    proxy.swallow('both');
  };
  // So long that jobs whose runs have ended move on, although the lock thread renews their locks.
  const loopAlone = {
    kind: 'half-open, the loop alone',
    weight: 4,
    target: (random) => `${LINE}${random.of(crew.names('worker'))}`,
    lasts: within([3 * LOCK_MS, 4 * LOCK_MS]),
    strike: (target) => ways.of(nameOf(target), 'main').forEach((proxy) => proxy.swallow('both')),
    end: heal,
  };
  return [
    fault('cut', 6, cut),
    fault('cut everybody', 2, cut, undefined, everybody),
    fault('cut in the middle of a message', 4, cutSoon, SHORTER_THAN_A_LOCK),
    fault('half-open', 8, swallow, ABOUT_A_LOCK),
    fault('half-open, everybody', 2, swallow, SHORTER_THAN_A_LOCK, everybody),
    loopAlone,
    fault('a firewall forgets', 4, (proxy) => proxy.strand(), [8000, 12_000]),
    fault('closed at the server, mute at the client', 6, (proxy) => proxy.abandon(), ABOUT_A_LOCK, holder),
    fault('closed at the server, client cut off', 6, cutOff, ABOUT_A_LOCK, holder),
    fault('delay', 4, delay, [1000, 6000]),
    fault('delay, everybody', 1, delay, SHORTER_THAN_A_LOCK, everybody),
    fault('slow', 2, (proxy, random) => proxy.throttle(random.between(2000, 20_000)), [1000, 5000]),
    fault('lost replies', 5, (proxy, random) => proxy.dropReplies({ times: random.between(1, 5) }), SHORTER_THAN_A_LOCK),
  ];
}

function cutSoon(proxy, random) {
  proxy.cutAfter({ bytes: { from: 1, to: 2000, seed: random.between(1, 2 ** 30) }, times: random.between(1, 3) });
}
