-- use: clock queue
-- Arms the queue: its next change is published. Answers its version, for a change that came before.
if queue.armed == 0 then
  set('armed', 1)
  save()
end
return digits(queue.version)
