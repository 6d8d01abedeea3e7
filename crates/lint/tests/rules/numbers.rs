//! Numbers that a sample never has.

use crate::Row;

pub const ROWS: &[Row] = &[
    (
        "impossible-number",
        "listen f\n bind :80\n stick-table type ip size 1m expire 1m store gpc0\n http-request track-sc0 src\n \
         http-request deny if { dst_port 80443 } #!\n http-request deny if { dst_port gt 65535 } #!\n \
         http-response deny if { status 20 } #!\n http-request deny if { sc_get_gpc0(0) lt 0 } #!\n \
         http-request deny if { src,table_gpc0 le 2 lt 0 } #!\n server s 127.0.0.1:1\n",
        "listen f\n bind :80\n stick-table type ip size 1m expire 1m store gpc0\n http-request track-sc0 src\n \
         http-request deny if { dst_port 8443 1: } { dst_port gt 65534 }\n http-response deny if { status 200:299 500: }\n \
         http-request deny if { sc_get_gpc0(0) lt 1 }\n http-request deny if { src,table_gpc0 le 0 }\n \
         http-request deny if { req.hdr_val(x) lt 0 }\n server s 127.0.0.1:1\n",
    ),
    (
        "capture-not-declared",
        "frontend f\n bind :80\n capture request header Host len 10\n default_backend b\n\
         backend b\n http-request set-header a %[capture.req.hdr(1)] #!\n \
         http-response set-header a %[capture.res.hdr(0)] #!\n server s 127.0.0.1:1\n",
        "frontend f\n bind :80\n capture request header Host len 10\n http-request capture path len 5\n default_backend b\n\
         backend b\n http-request set-header a %[capture.req.hdr(1)]\n server s 127.0.0.1:1\n",
    ),
];
