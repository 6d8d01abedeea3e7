//! Patterns that never match.

use crate::Row;

pub const ROWS: &[Row] = &[
    (
        "path-without-slash",
        "listen f\n bind :80\n http-request deny if { path_beg api /api } #!\n http-request deny if { path -i admin } #!\n \
         http-request deny if { path_reg ^api/ } #!\n http-request deny if { path,lower -m beg img } #!\n \
         server s 127.0.0.1:1\n",
        "listen f\n bind :80\n http-request deny if { path_beg /api }\n http-request deny if { path * }\n \
         http-request deny if { path_reg ^/api ^.api ^(api|/x) ^a|/b ^a?/ }\n http-request deny if { path_end api }\n \
         http-request deny if { path_dir api } { path_sub a }\n http-request deny if { path,field(2,/) -m beg img }\n \
         server s 127.0.0.1:1\n",
    ),
    (
        "query-in-path",
        "listen f\n bind :80\n http-request deny if { path_beg /a?b= } #!\n http-request deny if { path_reg /a\\\\?b } #!\n \
         http-request deny if { path_sub ?x } #!\n server s 127.0.0.1:1\n",
        "listen f\n bind :80\n http-request deny if { pathq -m beg /a?b= }\n http-request deny if { path_reg /ab?c }\n \
         http-request deny if { path,url_dec -m sub ?x }\n http-request deny if { url_beg /a?b }\n server s 127.0.0.1:1\n",
    ),
    (
        "wildcard-as-text",
        "listen f\n bind :80\n http-request deny if { hdr(host) -i *.example.com } #!\n \
         http-request deny if { path_beg /api/* } #!\n http-request deny if { req.hdr(Origin),lower -m end *.a.example } #!\n \
         server s 127.0.0.1:1\n",
        "listen f\n bind :80\n http-request deny if { hdr(accept) */* }\n http-request deny if { path /a*b }\n \
         http-request deny if { path * }\n http-request deny if { hdr_reg(host) ^[^.]*[.]example[.]com }\n \
         server s 127.0.0.1:1\n",
    ),
    (
        "regex-as-text",
        "listen f\n bind :80\n http-request deny if { path_beg ^/api } #!\n http-request deny if { hdr(host) www\\\\.a\\\\.b } #!\n \
         http-request deny if { path_end .*php } #!\n http-request deny if { path /x$ } #!\n server s 127.0.0.1:1\n",
        "listen f\n bind :80\n http-request deny if { path_reg ^/api }\n \
         http-request deny if { hdr(x) ^a }\n server s 127.0.0.1:1\n",
    ),
    (
        "no-host-name",
        "listen f\n bind :80\n http-request deny if { hdr(host) -i a.example/x } #!\n \
         http-request deny if { hdr_beg(host) http://a } #!\n http-request deny unless { ssl_fc_sni a.example:443 } #!\n \
         server s 127.0.0.1:1\n",
        "listen f\n bind :80\n http-request deny if { hdr(host) a.example:8080 }\n \
         http-request deny if { hdr_dom(host) a.example/ }\n http-request deny if { hdr_beg(referer) http://a/ }\n \
         server s 127.0.0.1:1\n",
    ),
    (
        "method-in-lower-case",
        "listen f\n bind :80\n http-request deny if { method get POST } #!\n http-request deny if { method Patch } #!\n \
         server s 127.0.0.1:1\n",
        "listen f\n bind :80\n http-request deny if { method GET own }\n http-request deny if { method -i patch }\n server s 127.0.0.1:1\n",
    ),
    (
        "case-lost",
        "listen f\n bind :80\n http-request deny if { hdr(host),lower A.example } #!\n \
         http-request deny if { path,upper -m end .PHP .php } #!\n server s 127.0.0.1:1\n",
        "listen f\n bind :80\n http-request deny if { hdr(host),lower -i A.example }\n \
         http-request deny if { hdr(a),lower,regsub(a,A) A }\n http-request deny if { path,lower -m reg [A-Z] }\n \
         http-request deny if { hdr(a),lower -m beg a1 }\n server s 127.0.0.1:1\n",
    ),
    (
        "network-as-text",
        "listen f\n bind :80\n http-request deny if { hdr(x-forwarded-for) 10.0.0.0/8 } #!\n server s 127.0.0.1:1\n",
        "listen f\n bind :80\n http-request deny if { hdr_ip(x-forwarded-for) 10.0.0.0/8 }\n \
         http-request deny if { hdr(x-forwarded-for) -m ip 10.0.0.0/8 }\n http-request deny if { hdr(x) 10.0.0.1 }\n \
         server s 127.0.0.1:1\n",
    ),
    (
        "flag-after-pattern",
        "listen f\n bind :80\n acl a hdr(x) a -i #!\n http-request deny if a || { path_end .php -i } #!\n \
         server s 127.0.0.1:1\n",
        "listen f\n bind :80\n acl a hdr(x) -i a\n http-request deny if a || { hdr(y) -- a -i } || { hdr(y) a '-i' }\n \
         server s 127.0.0.1:1\n",
    ),
    (
        "operator-as-pattern",
        "listen f\n bind :80\n acl a path_beg /a || path_beg /b #!\n acl b path /a or hdr(host) b #!\n acl c path /a if a #!\n \
         acl d hdr(x) gt 5 #!\n http-request deny if a || b || c || d\n server s 127.0.0.1:1\n",
        "listen f\n bind :80\n acl a hdr(accept-language) en or de\n acl b hdr(x) -m int gt 5\n acl c hdr(x) '||'\n \
         acl d hdr(x) what if\n http-request deny if a or b || c or d\n server s 127.0.0.1:1\n",
    ),
];
