-- Writes a log row, or removes old ones, and returns how many the job has now.
_next := _job.log_next;
IF _one.kind = 'log' THEN
  INSERT INTO logs (queue, job, number, row) VALUES (_queue, _one.id, _next, _one.said);
  _next := _next + 1;
END IF;
_first := greatest(_job.log_first, _next - _one.keep);
IF _first > _job.log_first THEN DELETE FROM logs WHERE queue = _queue AND job = _one.id AND number < _first; END IF;
UPDATE jobs SET log_first = _first, log_next = _next WHERE queue = _queue AND id = _one.id;
_replies := _replies || ('["done",' || _next - _first || ']');
