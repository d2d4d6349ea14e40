-- Records the failure of an attempt.
attemptsMade = attemptsMade + 1, failedReason = :reason, stacktrace = :stacktrace
