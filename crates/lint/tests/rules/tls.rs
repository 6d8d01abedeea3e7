//! TLS, and addresses.

use crate::Row;

pub const ROWS: &[Row] = &[
    (
        "tls-setting-without-ssl",
        "listen f\n bind :80 alpn h2 #!\n server s 127.0.0.1:1 check verify none #!\n server t 127.0.0.1:2 ciphers AES256-SHA check #!\nlisten g\n bind :443 crt site.pem #!\n server s 127.0.0.1:1\n",
        "listen f\n bind :80\n server s 127.0.0.1:1 check check-ssl verify none\n server t 127.0.0.1:2 ssl verify none\n \
         server u 127.0.0.1:2 no-ssl verify none\n server sni 127.0.0.1:2\n",
    ),
    (
        "trust-without-verify",
        "listen f\n bind :80\n server s 127.0.0.1:1 ssl verify none verifyhost a.example #!\n",
        "listen f\n bind :80\n server s 127.0.0.1:1 ssl verify none\n server t 127.0.0.1:1 ssl verify required ca-file site.pem\n",
    ),
    (
        "tls-sample-without-tls",
        "frontend f\n bind :80\n mode tcp\n tcp-request session accept if { ssl_fc } #!\n \
         use_backend b if { ssl_fc_sni a.example } #!\n default_backend b\nbackend b\n mode tcp\n server s 127.0.0.1:1\n",
        "frontend f\n bind :80\n http-request redirect scheme https if !{ ssl_fc }\n \
         http-request deny unless { ssl_fc }\n default_backend b\nbackend b\n server s 127.0.0.1:1\n",
    ),
    (
        "trust-without-verify",
        "listen f\n bind :443 ssl crt site.pem ca-file site.pem #!\n server s 127.0.0.1:1\n",
        "listen f\n bind :443 ssl crt site.pem ca-file site.pem verify optional\n server s 127.0.0.1:1\n",
    ),
    (
        "hello-sample-with-tls",
        "frontend f\n mode tcp\n bind :443 ssl crt site.pem\n tcp-request inspect-delay 5s\n \
         tcp-request content reject if { req.ssl_sni a.example } #!\n default_backend b\n\
         backend b\n mode tcp\n server s 127.0.0.1:1\n",
        "frontend f\n bind :443 ssl crt site.pem\n http-request deny if { ssl_fc_sni a.example }\n default_backend b\n\
         frontend g\n mode tcp\n bind :444\n tcp-request inspect-delay 5s\n \
         tcp-request content reject if { req.ssl_sni a.example }\n default_backend c\n\
         backend b\n server s 127.0.0.1:1\nbackend c\n mode tcp\n server s 127.0.0.1:1\n",
    ),
    (
        "client-certificate-not-requested",
        "frontend f\n bind :443 ssl crt site.pem\n http-request set-header a %[ssl_c_s_dn(cn)] #!\n \
         http-request set-header b %[ssl_c_serial]\n default_backend b\nbackend b\n server s 127.0.0.1:1\n",
        "frontend f\n bind :443 ssl crt site.pem\n bind :444 ssl crt site.pem ca-file site.pem verify optional\n \
         http-request set-header a %[ssl_c_s_dn(cn)]\n default_backend b\nbackend b\n server s 127.0.0.1:1\n\
         frontend g\n bind :445 ssl crt site.pem\n http-request set-header a %[ssl_c_used]\n default_backend b\n",
    ),
    (
        "redirect-loop",
        "frontend f\n bind :80\n bind :443 ssl crt site.pem\n http-request redirect scheme https #!\n",
        "frontend f\n bind :80\n bind :443 ssl crt site.pem\n http-request redirect scheme https unless { ssl_fc }\n \
         default_backend b\nfrontend g\n bind :81\n redirect scheme https\n\
         frontend h\n bind :444 ssl crt site.pem\n http-request return status 200 if { ssl_fc }\n \
         redirect scheme https\nbackend b\n server s 127.0.0.1:1\n",
    ),
    (
        "address-bound-twice",
        "listen f\n bind 127.0.0.1:80\n server s 127.0.0.1:1\nlisten g\n bind :80-82\n bind *:82 #!\n server s 127.0.0.1:1\n",
        "listen f\n bind 127.0.0.1:80\n server s 127.0.0.1:1\nlisten g\n bind :80\n bind :81 interface lo\n bind :81\n bind ::1:80\n server s 127.0.0.1:1\nlisten h\n disabled\n bind :80\n",
    ),
];
