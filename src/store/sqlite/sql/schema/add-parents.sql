-- Number of jobs in waiting-children.
ALTER TABLE queues ADD COLUMN parents INTEGER NOT NULL DEFAULT 0;
