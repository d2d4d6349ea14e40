#!/bin/sh
# Ends a test server and removes its folder when the process that started it closes our standard input, or dies in any way.
#   guard.sh <folder> <signal that ends the server>
# On standard input: a line with the pid of the server at each start, an empty line when it has ended.
folder=$1
ending=$2
server=
while read -r line; do server=$line; done

if [ -n "$server" ]; then
  # Read now: children of a dead process are nobody's, and a stopped one would stay for ever.
  family="$server $(cat "/proc/$server/task/$server/children" 2>/dev/null)"
  kill -CONT $family
  kill "-$ending" "$server"
  tries=0
  while kill -0 "$server" && [ $tries -lt 200 ]; do
    tries=$((tries + 1))
    sleep 0.02
  done
  kill -KILL $family
fi 2>/dev/null

# A PostgreSQL that was killed leaves its pid file, and a System V segment which is named there; the kernel has room for 4,096 of them.
segment=$(sed -n '7s/.* //p' "$folder/data/postmaster.pid" 2>/dev/null)
[ -n "$segment" ] && ipcrm -m "$segment" 2>/dev/null

# What was killed a moment ago may still be writing.
rm -rf -- "$folder" || { sleep 0.5; rm -rf -- "$folder"; }
