-- Whether the queue has had a schedule: 1 if so.
ALTER TABLE queues ADD COLUMN scheduled INTEGER NOT NULL DEFAULT 0;
