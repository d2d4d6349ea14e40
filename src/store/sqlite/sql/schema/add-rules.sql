-- Settings that few queues have, as JSON (queue-state.ts): rate, metrics.
ALTER TABLE queues ADD COLUMN rules TEXT;
