//! Tests of notices: a valid configuration whose lines are served in another way than their reader may expect.

use crate::support::{DEFAULTS, Folder, line};

/// Valid lines, and the notice about them.
const NOTICES: &[(&str, &str)] = &[
    (
        "backend b\n server s none.invalid:80 init-addr libc,none",
        "'server b/s' : could not resolve address 'none.invalid', disabling server.",
    ),
    (
        "backend b\n server-template s 2 none.invalid:80 init-addr libc,none",
        "'server-template b/s' : could not resolve address 'none.invalid', disabling server.",
    ),
    ("backend b\n server s none.invalid:80 init-addr none", ""),
    ("backend b\n server s none.invalid:80 init-addr last,none", ""),
    ("backend b\n server s none.invalid:80 init-addr libc,192.0.2.1", ""),
    (
        "frontend f\n bind 127.0.0.1:1\n log 127.0.0.1 local0\n log-format \"%ci %[ssl_fc_unique_id,hex]\"",
        "fetch method 'ssl_fc_unique_id' never has a sample: the Finished message",
    ),
    (
        "frontend f\n bind 127.0.0.1:1\n http-response set-header a %[ssl_bc_unique_id]",
        "fetch method 'ssl_bc_unique_id' never has a sample: the Finished message",
    ),
    (
        "frontend f\n bind 127.0.0.1:1\n acl ok http_auth_bearer,jwt_verify(txn.alg,secret) 1\n \
         http-request set-var(txn.alg) http_auth_bearer,jwt_header_query('$.alg')\n http-request deny unless ok",
        "'jwt_verify' has its algorithm from the token ('txn.alg'), which may select 'none'",
    ),
    (
        "frontend f\n bind 127.0.0.1:1\n http-request set-var(txn.alg) http_auth_bearer,jwt_header_query,json_query('$.alg')\n \
         http-request deny unless { http_auth_bearer,jwt_verify_cert(txn.alg,cert) 1 }",
        "'jwt_verify_cert' has its algorithm from the token ('txn.alg'), which may select 'none'",
    ),
    (
        "frontend f\n bind 127.0.0.1:1\n http-request deny unless { http_auth_bearer,jwt_header_query('$.alg'),\
         set-var(txn.alg) -m found } { http_auth_bearer,jwt_verify(txn.alg,secret) 1 }",
        "'jwt_verify' has its algorithm from the token ('txn.alg'), which may select 'none'",
    ),
    (
        "global\n tune.jwt-none reject\nfrontend f\n bind 127.0.0.1:1\n http-request set-var(txn.alg) \
         http_auth_bearer,jwt_header_query('$.alg')\n http-request deny unless { http_auth_bearer,jwt_verify(txn.alg,secret) 1 }",
        "",
    ),
    (
        "frontend f\n bind 127.0.0.1:1\n http-request set-var(txn.alg) http_auth_bearer,jwt_payload_query('$.iss'),\
         map_str(/dev/null)\n http-request deny unless { http_auth_bearer,jwt_verify(txn.alg,secret) 1 }",
        "",
    ),
    (
        "frontend f\n bind 127.0.0.1:1\n http-request set-var(txn.seen) http_auth_bearer,jwt_header_query('$.alg')\n \
         http-request deny unless { http_auth_bearer,jwt_verify(HS256,secret) 1 }",
        "",
    ),
];

#[test]
fn what_is_served_in_another_way_is_noticed() {
    let folder = Folder::new();
    for (lines, wanted) in NOTICES {
        let found = line(&format!("-c -f {}", folder.write("notices.cfg", &format!("{DEFAULTS}{lines}\n"))));
        assert_eq!(found.code(), Some(0), "{lines}\n{}", found.stderr);
        let notices: Vec<&str> = found.stderr.lines().filter(|line| line.starts_with("[NOTICE]")).collect();
        let is_said = |line: &&&str| !wanted.is_empty() && line.contains(wanted);
        assert_eq!(
            notices.iter().filter(is_said).count(),
            usize::from(!wanted.is_empty()),
            "{lines}\n{}",
            found.stderr
        );
        assert!(
            !found.stderr.contains("[WARNING]") && (found.stderr.is_empty() || !wanted.is_empty()),
            "{}",
            found.stderr
        );
    }
}
