-- Records a revocation for the owner of the lock.
INSERT INTO revocations (queue, session, number, job, fence, reason) VALUES (:queue, :session, :number, :id, :fence, :reason)
