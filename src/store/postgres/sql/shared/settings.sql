-- The settings of every verb. Plans must not depend on statistics: a table is empty in one minute and has a million rows in the next. So
-- the planner may choose only index scans and nested loops. These also lock rows in the requested order, and a query that asks for an
-- order gets the index that has it.
-- The search path of the moment of creation is the schema's, and stays with the function.
SET search_path FROM CURRENT
SET plan_cache_mode TO 'force_generic_plan'
SET enable_seqscan TO 'off'
SET enable_bitmapscan TO 'off'
SET enable_hashjoin TO 'off'
SET enable_mergejoin TO 'off'
SET enable_material TO 'off'
SET enable_sort TO 'off'
-- Plans with disabled nodes look expensive, and the JIT would compile expensive plans for 100 ms and more.
SET jit TO 'off'
-- Less than the timeout of a call, so that the caller gets the real reason: a foreign transaction holds the lock.
SET lock_timeout TO '8s'
