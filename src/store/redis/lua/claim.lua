-- use: clock queue jobs lanes places locks expiry reassure special claim
-- ARGV: a claim request. Answers the claim.
local reply = claim(claimRequest(1))
keepSeq(ARGV[1])
flushPlaces()
save()
return reply
