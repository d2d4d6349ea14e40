-- Whether a job has run, or was delayed, so that its record needs more columns than those of a new job.
attemptsMade + attemptsStarted + stalledCounter + delay > 0 OR coalesce(
  processedOn, finishedOn, processedBy, returnvalue, failedReason, stacktrace, progress) IS NOT NULL
