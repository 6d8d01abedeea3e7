//! Settings of servers and backends.

use crate::Row;

pub const ROWS: &[Row] = &[
    (
        "server-cookie-without-cookie",
        "listen f\n bind :80\n server s 127.0.0.1:1 cookie a #!\n server t 127.0.0.1:2\n",
        "listen f\n bind :80\n cookie C insert\n server s 127.0.0.1:1 cookie a\n server t 127.0.0.1:2\n",
    ),
    (
        "cookie-without-server-cookies",
        "listen f\n bind :80\n cookie C insert #!\n server s 127.0.0.1:1\n",
        "listen f\n bind :80\n cookie C insert dynamic\n dynamic-cookie-key x\n server s 127.0.0.1:1\n",
    ),
    (
        "duplicate-server-cookie",
        "listen f\n bind :80\n cookie C insert\n server s 127.0.0.1:1 cookie a\n server t 127.0.0.1:2 cookie a #!\n",
        "listen f\n bind :80\n cookie C insert\n server s 127.0.0.1:1 cookie a\n server t 127.0.0.1:2 cookie a backup\n",
    ),
    (
        "check-not-enabled",
        "listen f\n bind :80\n option httpchk GET / #!\n http-check expect status 200\n server s 127.0.0.1:1\n",
        "listen f\n bind :80\n option httpchk GET /\n default-server check\n server s 127.0.0.1:1\nlisten g\n bind :81\n \
         server s 127.0.0.1:1\n",
    ),
    (
        "check-setting-without-check",
        "listen f\n bind :80\n server s 127.0.0.1:1 inter 1s rise 2 #!\n server t 127.0.0.1:2 fall 2 check\n",
        "listen f\n bind :80\n server s 127.0.0.1:1 track t fall 2\n server t 127.0.0.1:2 fall 2 check\n \
         server u 127.0.0.1:2 fall 2 no-check\n server port 127.0.0.1:3\n",
    ),
    (
        "agent-setting-without-agent",
        "listen f\n bind :80\n server s 127.0.0.1:1 check agent-port 5 agent-inter 1s #!\n",
        "listen f\n bind :80\n server s 127.0.0.1:1 agent-check agent-port 5 agent-inter 1s\n",
    ),
    (
        "queue-limit-without-maxconn",
        "listen f\n bind :80\n server s 127.0.0.1:1 maxqueue 5 #!\n",
        "listen f\n bind :80\n default-server maxconn 5\n server s 127.0.0.1:1 maxqueue 5\n",
    ),
    (
        "fullconn-without-minconn",
        "listen f\n bind :80\n fullconn 5 #!\n server s 127.0.0.1:1 maxconn 5\n",
        "listen f\n bind :80\n fullconn 5\n server s 127.0.0.1:1 minconn 1 maxconn 5\n",
    ),
    (
        "hash-type-without-hash",
        "listen f\n bind :80\n balance roundrobin\n hash-type consistent #!\n server s 127.0.0.1:1\n",
        "listen f\n bind :80\n balance source\n hash-type consistent\n server s 127.0.0.1:1\n",
    ),
    (
        "resolvers-without-name",
        "resolvers r\n nameserver n 127.0.0.1:53\nlisten f\n bind :80\n server s 127.0.0.1:1 resolvers r #!\n",
        "resolvers r\n nameserver n 127.0.0.1:53\nlisten f\n bind :80\n \
         server s a.example:1 resolvers r init-addr none\n",
    ),
    (
        "server-without-address",
        "listen f\n bind :80\n server s a.example:1 init-addr none #!\n",
        "listen f\n bind :80\n server s a.example:1 init-addr none,127.0.0.1\n",
    ),
];
