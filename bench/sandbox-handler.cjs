// The processor of `sandbox`: does nothing, or holds its slot for a time.
const { setTimeout: sleep } = require('node:timers/promises');

module.exports = async (job) => {
  if (job.data.holdMs !== undefined) await sleep(job.data.holdMs);
};
