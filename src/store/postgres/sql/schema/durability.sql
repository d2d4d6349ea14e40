-- Returns the settings with which acknowledged writes can be lost (warnings.ts).
SELECT name, setting FROM pg_settings WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit')
