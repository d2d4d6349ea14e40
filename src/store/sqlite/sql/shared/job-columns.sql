-- All columns of a record (JobRow in record.ts).
job, id, name, data, opts, state, priority, delay, timestamp, attemptsMade, attemptsStarted, stalledCounter,
processedOn, finishedOn, processedBy, returnvalue, failedReason, stacktrace, progress, lostBy, extras
