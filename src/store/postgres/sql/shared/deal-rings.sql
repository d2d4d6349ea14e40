-- Takes turns until there are enough jobs, or none is found. If other transactions hold groups or jobs, the claim should be retried soon.
-- SOON_MS = 5
LOOP
  _taken := 0;
  IF _ring.many > 0 THEN
    -- include: take-turns
  END IF;
  IF _ring.many > 0 OR _groups IS NOT NULL THEN
    -- include: write-groups
  END IF;
  EXIT WHEN _all = _count OR _cut OR _ring.many = 0;
  EXIT WHEN _wrote.moved = 0;
  -- include: lock-ring
  EXIT WHEN _ring.rated;
END LOOP;
IF _all < _count AND NOT _cut AND (_soon OR EXISTS (
  SELECT FROM groups WHERE queue = _queue AND turn IS NOT NULL AND place AND rests_until IS NULL LIMIT 1
)) THEN
  _look.due := least(_look.due, _now + 5);
END IF;
