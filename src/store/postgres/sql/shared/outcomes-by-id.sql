-- The outcomes of a call, each once, in the order of the ids of their jobs.
SELECT DISTINCT ON (id, fence) * FROM unnest(_ids, _fences, _texts) WITH ORDINALITY o(id, fence, said, n)
ORDER BY id, fence, n
