-- Records a notice for the owner of a lock. `kind`: null if the lock was taken away.
INSERT INTO revocations (queue, session, number, job, fence, reason, kind) VALUES (:queue, :session, :number, :id, :fence, :reason, :kind)
