//! Counters of stick tables.

use crate::Row;

pub const ROWS: &[Row] = &[
    (
        "counter-not-stored",
        "frontend f\n bind :80\n stick-table type ip size 1m expire 1m store conn_cur\n http-request track-sc0 src\n \
         http-request deny if { sc_http_req_rate(0) gt 10 } #!\n default_backend b\n\
         backend b\n server s 127.0.0.1:1\n",
        "frontend f\n bind :80\n stick-table type ip size 1m expire 1m store http_req_rate(10s)\n \
         http-request track-sc0 src\n http-request deny if { sc_http_req_rate(0) gt 10 }\n default_backend b\n\
         backend b\n server s 127.0.0.1:1\n",
    ),
    // In another table, by the client's address, by a converter and by an action.
    (
        "counter-not-stored",
        "backend t\n stick-table type ip size 1m expire 1m store gpc0\n\
         frontend f\n bind :80\n tcp-request connection track-sc1 src table t\n \
         http-request deny if { src_conn_rate(t) gt 1 } #!\n http-request deny if { src,table_gpt0(t) gt 1 } #!\n \
         http-request sc-set-gpt0(1) 1 #!\n http-request deny if { sc1_get_gpc0 gt 1 }\n default_backend b\n\
         backend b\n server s 127.0.0.1:1\n",
        "backend t\n stick-table type ip size 1m expire 1m store gpc(1),gpt0,conn_rate(1s)\n\
         frontend f\n bind :80\n tcp-request connection track-sc1 src table t\n \
         http-request deny if { src_conn_rate(t) gt 1 }\n http-request deny if { src,table_gpt0(t) gt 1 }\n \
         http-request sc-set-gpt0(1) 1\n http-request deny if { sc1_get_gpc0 gt 1 }\n default_backend b\n\
         backend b\n server s 127.0.0.1:1\n",
    ),
    // An element beyond the array; a rate that an increment updates.
    (
        "counter-not-stored",
        "listen f\n bind :80\n stick-table type ip size 1m expire 1m store gpc(2)\n http-request track-sc0 src\n \
         http-request sc-inc-gpc(2,0) #!\n server s 127.0.0.1:1\n",
        "listen f\n bind :80\n stick-table type ip size 1m expire 1m store gpc0_rate(1s)\n http-request track-sc0 src\n \
         http-request sc-inc-gpc0(0)\n http-request deny if { sc0_gpc0_rate gt 1 }\n server s 127.0.0.1:1\n",
    ),
    // A table of a 'peers' section.
    (
        "counter-not-stored",
        "peers p\n peer here 127.0.0.1:1\n table t type ip size 1m store gpt0\n\
         listen f\n bind :80\n http-request track-sc0 src table p/t\n http-request deny if { sc0_http_err_rate gt 1 } #!\n \
         server s 127.0.0.1:1\n",
        "peers p\n peer here 127.0.0.1:1\n table t type ip size 1m store http_err_rate(1s)\n\
         listen f\n bind :80\n http-request track-sc0 src table p/t\n http-request deny if { sc0_http_err_rate gt 1 }\n \
         server s 127.0.0.1:1\n",
    ),
    (
        "counter-not-tracked",
        "listen f\n bind :80\n stick-table type ip size 1m expire 1m store http_req_rate(1s)\n \
         http-request track-sc0 src\n http-request deny if { sc0_http_req_rate gt 10 }\n \
         http-request deny if { sc1_http_req_rate gt 10 } #!\n server s 127.0.0.1:1\n",
        // The backend's rule tracks what the log line of the frontend shows.
        "frontend f\n bind :80\n log stdout format raw local0\n log-format %[sc1_http_req_rate]\n default_backend b\n\
         backend b\n stick-table type ip size 1m expire 1m store http_req_rate(1s)\n http-request track-sc1 src\n \
         server s 127.0.0.1:1\n",
    ),
    (
        "tracked-not-read",
        "listen f\n bind :80\n stick-table type ip size 1m expire 1m store http_req_rate(1s)\n \
         http-request track-sc0 src #!\n server s 127.0.0.1:1\n",
        "listen f\n bind :80\n stick-table type ip size 1m expire 1m store http_req_rate(1s)\n \
         http-request track-sc0 src\n http-request track-sc1 src table g\n http-request track-sc2 src table h\n \
         http-request deny if { src,in_table(f) } || { sc1_http_req_rate gt 1 } || { sc0_http_req_rate(h) gt 1 }\n \
         server s 127.0.0.1:1\nbackend g\n stick-table type ip size 1m expire 1m store http_req_rate(1s)\n\
         backend h\n stick-table type ip size 1m expire 1m store http_req_rate(1s)\n",
    ),
];
