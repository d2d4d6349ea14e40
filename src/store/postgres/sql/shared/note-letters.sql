-- Lets claims of the queue look for messages if a new job may send a letter.
-- MARK.letter = 128
IF (SELECT bool_or(mark & 128 > 0) FROM unnest(_marks) mark) THEN
  PERFORM relate(ARRAY[_queue], ARRAY(SELECT DISTINCT extra::json ->> 'l' FROM unnest(_extras) extra WHERE extra::json ->> 'l' IS NOT NULL));
END IF;
