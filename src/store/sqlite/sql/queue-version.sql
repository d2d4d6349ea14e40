-- Returns a number that grows with every write that watchers must see.
SELECT version FROM queues WHERE name = :name
