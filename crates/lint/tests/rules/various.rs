//! Lines of proxies that need another line.

use crate::Row;

pub const ROWS: &[Row] = &[
    (
        "compression-without-algorithm",
        "listen f\n bind :80\n compression type text/html #!\n server s 127.0.0.1:1\n",
        "listen f\n bind :80\n compression algo gzip\n compression type text/html\n server s 127.0.0.1:1\n",
    ),
    (
        "monitor-fail-without-uri",
        "listen f\n bind :80\n monitor fail if { nbsrv lt 1 } #!\n server s 127.0.0.1:1\n",
        "listen f\n bind :80\n monitor-uri /x\n monitor fail if { nbsrv lt 1 }\n server s 127.0.0.1:1\n",
    ),
    (
        "no-inspect-delay",
        "listen f\n bind :80\n mode tcp\n use_backend b if { req.ssl_sni a.example } #!\n server s 127.0.0.1:1\n\
         backend b\n mode tcp\n server s 127.0.0.1:1\n",
        "listen f\n bind :80\n mode tcp\n tcp-request inspect-delay 5s\n use_backend b if { req.ssl_sni a.example }\n \
         server s 127.0.0.1:1\nbackend b\n mode tcp\n server s 127.0.0.1:1\n",
    ),
    (
        "header-name",
        "listen f\n bind :80\n http-request deny if { req.hdr(host:) a } #!\n http-request set-header a %[hdr('x y')] #!\n \
         server s 127.0.0.1:1\n",
        "listen f\n bind :80\n http-request deny if { req.hdr(host) a } { hdr_cnt() gt 1 }\n server s 127.0.0.1:1\n",
    ),
];
