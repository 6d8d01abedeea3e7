//! Sections that nothing leads to, and variables.

use crate::Row;

pub const ROWS: &[Row] = &[
    (
        "backend-not-reached",
        "frontend f\n bind :80\n default_backend b\nbackend b\n server s 127.0.0.1:1\nbackend c #!\n server s 127.0.0.1:1\n",
        "frontend f\n bind :80\n use_backend bk_%[path,field(2,/)]_x if { nbsrv(d) gt 0 }\n default_backend b\n\
         backend b\n server s 127.0.0.1:1 track e/s\nbackend bk_a_x\n server s 127.0.0.1:1\n\
         backend d\n server s 127.0.0.1:1\nbackend e\n server s 127.0.0.1:1 check\nbackend g\n disabled\n\
         .if defined(NOWHERE)\n frontend h\n default_backend i\n.endif\nbackend i\n server s 127.0.0.1:1\n",
    ),
    (
        "unused-section",
        "resolvers r #!\n nameserver n 127.0.0.1:53\npeers p #!\n peer here 127.0.0.1:1\n\
         listen f\n bind :80\n server s 127.0.0.1:1\n",
        "resolvers default\n nameserver n 127.0.0.1:53\nuserlist u\n user a password b\n\
         listen f\n bind :80\n http-request auth unless { http_auth(u) }\n server s 127.0.0.1:1\n",
    ),
    (
        "cache-never-filled",
        "cache c\n total-max-size 1\nlisten f\n bind :80\n http-request cache-use c #!\n server s 127.0.0.1:1\n",
        "cache c\n total-max-size 1\nfrontend f\n bind :80\n http-request cache-use c\n default_backend b\n\
         backend b\n http-response cache-store c\n server s 127.0.0.1:1\n",
    ),
    (
        "cache-never-used",
        "cache c\n total-max-size 1\nlisten f\n bind :80\n http-response cache-store c #!\n server s 127.0.0.1:1\n",
        "cache c\n total-max-size 1\nlisten f\n bind :80\n http-request cache-use c\n http-response cache-store c\n \
         server s 127.0.0.1:1\n",
    ),
    (
        "variable-not-set",
        "listen f\n bind :80\n http-request deny if { var(txn.a) -m found } #!\n \
         http-request set-header a %[var(txn.b)] #!\n server s 127.0.0.1:1\n",
        "global\n set-var proc.x int(1)\nlisten f\n bind :80\n http-request set-var(txn.a) path\n \
         http-request deny if { var(txn.a) -m found } { var(proc.x) -m found } { var(proc.y) -m found }\n \
         http-request set-header a %[path,set-var(req.c)]%[var(req.c)]%[var(txn.d,no)]\n server s 127.0.0.1:1\n",
    ),
    (
        "variable-out-of-scope",
        "listen f\n bind :80\n http-request set-var(req.a) path\n http-response set-header a %[var(req.a)] #!\n \
         server s 127.0.0.1:1\n",
        "listen f\n bind :80\n http-request set-var(txn.a) path\n http-response set-header a %[var(txn.a)]\n \
         server s 127.0.0.1:1\n",
    ),
];
