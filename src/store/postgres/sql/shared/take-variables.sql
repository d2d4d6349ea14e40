-- The variables of take.sql. They have no defaults, and the statements of take.sql do as much as possible beside their main work. Each
-- expression that a function evaluates separately is set up again in every transaction, for about 1 µs.
_plain boolean;
_head bigint;
_left bigint;
_due bigint;
_undone boolean;
_taken int;
_bytes bigint;
_more boolean;
_rows text;
_next text[];
_active text;
_rest record;
_change journal;
