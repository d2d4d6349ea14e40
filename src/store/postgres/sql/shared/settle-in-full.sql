-- Settles by the ordinary path.
RETURN settle(
  _name, _session, _seq, array_fill('completed'::text, ARRAY[cardinality(_ids)]), _ids,
  array_fill(_session, ARRAY[cardinality(_ids)]), _fences, _texts, NULL, NULL, NULL, NULL, NULL, _session, _seq, _count, NULL,
  _by, NULL, NULL, NULL, _inline
);
