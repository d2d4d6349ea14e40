-- True for a plain job `j`: when it leaves a state, there is nothing to do but to change its row (leave.sql). Fast paths take no others.
j.marks = 0 AND j.lock_key IS NULL
