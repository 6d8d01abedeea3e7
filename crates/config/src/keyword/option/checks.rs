//! Options that choose a health check.

use super::{OptionKeyword, boolean, fixed, supported, switch};
use crate::document::Line;
use crate::keyword::check_method;
use crate::keyword::place::places::{ANY, BACK};
use crate::keyword::proxy::ProxyContext;
use crate::spec::CheckMethod;

/// Every keyword of the family.
pub(super) const TABLE: &[OptionKeyword] = &[
    supported(fixed(ANY), "external-check", "", "Checks servers with a program.", method),
    supported(
        fixed(BACK),
        "httpchk",
        "[<method>] [<uri>] [<version>] [<host>]",
        "Checks servers with an HTTP request.",
        method,
    ),
    supported(
        fixed(BACK),
        "grpc-check",
        "[service <name>] [authority <name>]",
        "Checks servers by the health checking protocol of gRPC. Weir's own.",
        method,
    ),
    supported(fixed(BACK), "ldap-check", "", "Checks LDAP servers.", method),
    supported(switch(BACK), "log-health-checks", "", "Logs every change of a health check.", log),
    supported(
        fixed(BACK),
        "mysql-check",
        "[user <name> [{ post-41 | pre-41 | post-80 }] [query <statement>]]",
        "Checks MySQL servers; query is Weir's own.",
        method,
    ),
    supported(fixed(BACK), "pgsql-check", "user <name>", "Checks PostgreSQL servers.", method),
    supported(fixed(BACK), "redis-check", "", "Checks Redis servers.", method),
    supported(fixed(BACK), "smtpchk", "[{ HELO | EHLO } <domain>]", "Checks SMTP servers.", method),
    supported(fixed(BACK), "spop-check", "", "Checks SPOP agents.", method),
    supported(fixed(BACK), "ssl-hello-chk", "", "Checks servers with an SSLv3 client hello.", method),
    supported(fixed(BACK), "tcp-check", "", "Checks servers by the tcp-check rules.", method),
];

fn method(context: &mut ProxyContext<'_>, line: &Line) {
    if let Some(method) = check_method::read(line, context.around, &mut context.report) {
        let check = &mut context.draft.spec.check;
        match &method {
            CheckMethod::Http(_) => check.begin_http(),
            CheckMethod::Tcp => check.begin_tcp(),
            _ => {}
        }
        check.method = method;
    }
}

fn log(context: &mut ProxyContext<'_>, line: &Line) {
    boolean(context, line, |context, on| context.draft.spec.check.log = on);
}
