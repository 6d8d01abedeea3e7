//! Proxies and backends.

use crate::Row;

pub const ROWS: &[Row] = &[
    (
        "nothing-answers",
        "frontend f\n bind :80\n use_backend b if { path /x }\n default_backend c\nbackend b #!\n balance roundrobin\n\
         backend c\n server s 127.0.0.1:1\n",
        "frontend f\n bind :80\n use_backend b if { path /x }\n default_backend c\nbackend b\n http-request return status 204\n\
         backend c\n server s 127.0.0.1:1\n",
    ),
    (
        "nothing-answers",
        "frontend f #!\n bind :80\n http-request set-header a b\n",
        "frontend f\n bind :80\n redirect scheme https\nlisten l\n bind :81\n default_backend c\nfrontend m\n bind :83\n monitor-uri /up\nlisten s\n bind :82\n \
         stats enable\nbackend c\n http-error status 503 content-type text/plain string x\n",
    ),
    (
        "servers-not-reached",
        "listen f\n bind :80\n http-request redirect location /x\n server s 127.0.0.1:1 #!\n server t 127.0.0.1:1\n",
        "listen f\n bind :80\n http-request allow if { path /x }\n http-request deny\n server s 127.0.0.1:1\n\
         listen g\n bind :81\n http-request deny if { path /y }\n redirect location %[path] ignore-empty\n \
         server s 127.0.0.1:1\n",
    ),
];
