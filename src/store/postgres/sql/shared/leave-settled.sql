-- Does what remains to be done for the jobs of a settle. Where only places of groups come free, no notes are needed.
_freed := coalesce(_keys, _marked, _groups) IS NOT NULL;
IF _grouped AND coalesce(_keys, _logged, _marked, _entered) IS NULL THEN
  IF _freed THEN _freed := free_places(_queue, _groups); END IF;
ELSIF _freed OR _logged IS NOT NULL THEN
  _change := leave(_queue, _clock, _keys, _logged, _marked, _extras, false, _change, _groups, _entered);
END IF;
