//! Conditions that never hold, and rules that are never reached.

use crate::Row;

pub const ROWS: &[Row] = &[
    (
        "never-true",
        "listen f\n bind :80\n http-request deny if FALSE #!\n acl a path /a\n http-request deny if a FALSE || a !TRUE #!\n \
         server s 127.0.0.1:1\n",
        "listen f\n bind :80\n http-request deny unless TRUE\n http-request deny if TRUE { path /a }\n \
         server s 127.0.0.1:1\n",
    ),
    (
        "contradiction",
        "listen f\n bind :80\n acl a hdr(host) -i a.example\n acl b hdr(host) -i b.example\n \
         http-request deny if a b #!\n http-request deny if { path_beg /a } { path_beg /b } #!\n \
         http-request deny if a !a #!\n http-request deny if METH_GET { method POST } || a #!\n \
         http-request deny if { path_end .php } { path /x } #!\n server s 127.0.0.1:1\n",
        "listen f\n bind :80\n acl a hdr(host) -i a.example\n acl b hdr(host) -i b.example A.example\n \
         http-request deny if a b\n http-request deny if { path_beg /a } { path_beg /a/b }\n \
         http-request deny if a || !a\n http-request deny if METH_GET { method HEAD POST }\n \
         http-request deny if { path_beg /a } { path_end b }\n http-request deny if { hdr(x) a } { hdr(x) b }\n \
         http-request deny if { url_param(a) a } { url_param(b) b }\n http-request deny if { rand(2) 0 } !{ rand(2) 0 }\n \
         http-request deny if a { path /a } || b { path /b }\n server s 127.0.0.1:1\n",
    ),
    (
        "rule-not-reached",
        "frontend f\n bind :80\n tcp-request connection accept if { src 127.0.0.1 }\n tcp-request connection reject\n \
         tcp-request connection accept if { src 127.0.0.2 } #!\n acl a path_beg /a\n acl b path_end b\n \
         http-request deny if a || b\n http-request redirect location / if b #!\n use_backend g if a\n \
         use_backend h if a b #!\n use_backend g if TRUE\n use_backend h if b #!\n\
         backend g\n server s 127.0.0.1:1\nbackend h\n server s 127.0.0.1:1\n",
        "frontend f\n bind :80\n tcp-request connection reject if { src 127.0.0.1 }\n \
         tcp-request connection accept if { src 127.0.0.2 }\n acl a path_beg /a\n acl b path_end b\n \
         http-request deny if a b\n http-request redirect location / if b\n http-request set-path /b if a\n \
         http-request deny if a b\n use_backend d if a\n use_backend g if a\n use_backend h if b\n use_backend h\nlisten l\n bind :81\n use-server s if { path /a }\n use-server t if { path /a }\n server s 127.0.0.1:1\n server t 127.0.0.1:1\n\
         backend d\n disabled\n server s 127.0.0.1:1\nbackend g\n server s 127.0.0.1:1\nbackend h\n server s 127.0.0.1:1\n",
    ),
    (
        "default-backend-not-reached",
        "frontend f\n bind :80\n use_backend g\n default_backend h #!\nfrontend e\n bind :81\n default_backend h\n\
         backend g\n server s 127.0.0.1:1\nbackend h\n server s 127.0.0.1:1\n",
        "frontend f\n bind :80\n use_backend g if { path /a }\n default_backend h\n\
         backend g\n server s 127.0.0.1:1\nbackend h\n server s 127.0.0.1:1\n",
    ),
];
