-- Records that the keys _keys may have come free.
INSERT INTO freed_keys (queue, lock_key)
SELECT _queue, key FROM (SELECT DISTINCT key FROM unnest(_keys) key WHERE key IS NOT NULL) freed;
