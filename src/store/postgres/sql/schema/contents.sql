-- Returns whether a schema is ours ($1: the quoted name of our table holdfast_schema in it), and how many relations it has ($2: its name).
SELECT to_regclass($1) IS NOT NULL,
  (SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $2)::int
