// How `npm run chaos` and `npm run soak` end: with the exit code of what they did, or with what was wrong with it.

export async function main(work) {
  try {
    process.exitCode = await work();
  } catch (error) {
    console.error(process.env.CHAOS_DEBUG ? error : error.message);
    process.exitCode = 1;
  }
  // Not by running out of work: Node 20 then waits for ever for a socket that was reset while it was being shut down, as proxies do.
  process.exit();
}
