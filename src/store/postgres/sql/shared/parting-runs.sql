-- The messages of _one that take parents from a child, in their order. Those of one kind that follow one another are one row: each row costs as
-- much as the child has parents.
SELECT array_agg(sender) AS senders, array_agg(parent) AS parents, removing
FROM (
  SELECT m.*, n - row_number() OVER (PARTITION BY removing ORDER BY n) AS run
  FROM (
    SELECT n, sender, body::json ->> 'parent' AS parent, body::json ->> 'remove' = 'true' AS removing
    FROM unnest(_one.senders, _one.bodies) WITH ORDINALITY o(sender, body, n)
  ) m
) m
GROUP BY removing, run ORDER BY min(n)
