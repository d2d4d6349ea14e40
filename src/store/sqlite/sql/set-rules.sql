-- Writes the rules of a queue.
UPDATE queues SET rules = :rules WHERE queue = :queue
