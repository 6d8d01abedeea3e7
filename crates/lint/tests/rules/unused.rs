//! Definitions that nothing refers to, and replacements that refer to nothing.

use crate::Row;

pub const ROWS: &[Row] = &[
    (
        "unused-acl",
        "listen f\n bind :80\n acl a path /a\n acl b path /b #!\n http-request deny if a\n server s 127.0.0.1:1\n",
        "listen f\n bind :80\n acl a path /a\n acl b path /b\n acl c acl(a,!b)\n http-request deny unless !c\n \
         acl d path /d\n acl e path /e\n acl d path /f\n stats admin if d\n use-server s if !e || b\n \
         server s 127.0.0.1:1\n",
    ),
    (
        "missing-group",
        "listen f\n bind :80\n http-request replace-path ^/a/(.*) /b/\\2 #!\n \
         http-request set-header a \"%[path,regsub('a(b)','\\2')]\" #!\n http-response replace-header a (?:b)c \\1 #!\n \
         server s 127.0.0.1:1\n",
        "listen f\n bind :80\n http-request replace-path ^/a/(.*) /b/\\1\\0\n \
         http-request set-header a \"%[path,regsub('a(b)','\\1')]\"\n http-response replace-header a (?:b)(c) \\1\n \
         server s 127.0.0.1:1\n",
    ),
];
