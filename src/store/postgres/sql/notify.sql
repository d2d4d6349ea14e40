-- Sends notifications to other processes (wake.ts).
SELECT pg_notify(:channel, payload) FROM unnest(:payloads::text[]) payload
