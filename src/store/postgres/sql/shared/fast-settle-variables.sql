-- The variables of settle-plain.sql and settle-children.sql.
_clock float8 := clock_ms();
_now bigint := floor(_clock);
_many int := cardinality(_ids);
_queue int;
_base bigint;
_done bigint[];
_finished int;
_minute int;
-- include: take-variables
