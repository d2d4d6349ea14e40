-- Variables of functions that start behind dead ranges (find-dead-ranges.sql).
_priorities int[] := '{}';
_heads bigint[] := '{}';
_head_keyed bigint := 0;
_head_freed bigint := 0;
