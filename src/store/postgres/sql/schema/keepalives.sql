-- Lets the server notice within about 15 s that a host is gone. Most systems default to two hours.
SET tcp_keepalives_idle = 5;
SET tcp_keepalives_interval = 2;
SET tcp_keepalives_count = 5
