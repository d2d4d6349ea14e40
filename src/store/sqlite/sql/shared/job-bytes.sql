-- Bytes of the payloads of a job. SQLite knows them without reading the payloads.
octet_length(data) + coalesce(octet_length(returnvalue), 0) + coalesce(octet_length(progress), 0)
  + coalesce(octet_length(stacktrace), 0)
