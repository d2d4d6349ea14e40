// Nobody ends but by the nemesis' hand, and whoever is asked to leave leaves.
const RULES = {
  'ended by itself': ({ victim, how, said }) => `${victim} ended with ${how}: ${said}`,
  'did not close': ({ victim, withinMs }) => `${victim} was asked to leave and was still there after ${withinMs} ms`,
  'failed to close': ({ who, message }) => `${who} could not close: ${message}`,
};

export function judgeProcesses(entries) {
  return entries
    .filter(({ event }) => event in RULES)
    .map((entry) => ({
      rule: entry.event,
      text: RULES[entry.event](entry),
      at: entry.at,
      concerns: { who: [entry.victim ?? entry.who], from: entry.at, to: entry.at },
    }));
}
