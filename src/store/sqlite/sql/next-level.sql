-- Returns the lowest limit of all groups between two limits that keeps groups from the ring.
SELECT min(level) FROM groups WHERE queue = :queue AND place = :place AND level > :level AND level < :limit
