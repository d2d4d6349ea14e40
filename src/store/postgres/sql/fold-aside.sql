-- Folds the journal of a queue, if no other transaction is folding. Called by fold.ts beside fast paths that are one statement.
SELECT try_fold(queue) FROM queues WHERE name = :queue
