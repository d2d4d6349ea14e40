-- The messages of _taken whose jobs are locked, together for each job that they go to, in the order of the jobs.
SELECT kind, queue, name, id, array_agg(sender ORDER BY number) AS senders, array_agg(number ORDER BY number) AS numbers,
  array_agg(body ORDER BY number) AS bodies
FROM unnest(_taken.kinds, _taken.receivers, _taken.names, _taken.ids, _taken.queues, _taken.numbers, _taken.bodies, _free)
  o(kind, queue, name, id, sender, number, body, free)
WHERE free IS NOT FALSE GROUP BY kind, queue, name, id ORDER BY queue, id COLLATE "C", kind
