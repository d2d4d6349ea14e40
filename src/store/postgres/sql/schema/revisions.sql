-- The number of migrations beside the version.
-- holdfast_schema: `revision` counts the migrations. `version` is READABLE_SINCE of the process that ran the last one: older processes
-- compare it with their own number of migrations.
ALTER TABLE holdfast_schema ADD COLUMN revision int NOT NULL DEFAULT 0;
