-- use: clock
-- Arms the queue: its next change is published. Answers its version, for a change that came before.
call('HSET', key('meta'), 'armed', 1)
return call('HGET', key('meta'), 'version') or '0'
