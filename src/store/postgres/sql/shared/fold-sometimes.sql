-- Folds the journal in one of 32 calls, if no other transaction is folding.
IF random() < 0.03125 THEN PERFORM try_fold(_queue); END IF;
