-- use: clock
-- ARGV: ids. Answers LostBy of each, false where there is none.
return fetch(key('lost'), ARGV)
