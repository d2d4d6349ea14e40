-- use: clock queue jobs lanes places locks expiry reassure special claim
-- ARGV: a claim request. Answers the claim.
local request = claimRequest(1)
local reply = claim(request)
keepSeq(request.session, request.lane)
flushPlaces()
save()
return reply
