//! Options that choose a health check.

use super::{OptionKeyword, boolean, fixed, not_yet, supported, switch};
use crate::document::Line;
use crate::keyword::place::places::BACK;
use crate::keyword::proxy::ProxyContext;
use crate::spec::CheckMethod;

/// Every keyword of the family.
pub(super) const TABLE: &[OptionKeyword] = &[
    not_yet(fixed(BACK), "external-check", "", "Checks servers with a program."),
    supported(
        fixed(BACK),
        "httpchk",
        "[<method>] [<uri>] [<version>] [<host>]",
        "Checks servers with an HTTP request.",
        http,
    ),
    not_yet(fixed(BACK), "ldap-check", "", "Checks LDAP servers."),
    supported(switch(BACK), "log-health-checks", "", "Logs every change of a health check.", log),
    not_yet(fixed(BACK), "mysql-check", "[user <name> [{ post-41 | pre-41 }]]", "Checks MySQL servers."),
    not_yet(fixed(BACK), "pgsql-check", "user <name>", "Checks PostgreSQL servers."),
    not_yet(fixed(BACK), "redis-check", "", "Checks Redis servers."),
    not_yet(fixed(BACK), "smtpchk", "[{ HELO | EHLO } <domain>]", "Checks SMTP servers."),
    not_yet(fixed(BACK), "spop-check", "", "Checks SPOP agents."),
    not_yet(fixed(BACK), "ssl-hello-chk", "", "Checks servers with an SSLv3 greeting."),
    supported(fixed(BACK), "tcp-check", "", "Checks servers as tcp-check lines say.", tcp),
];

fn http(context: &mut ProxyContext<'_>, line: &Line) {
    if !context.report.too_many(line, 6, "option httpchk") {
        let line = context.around.rule_line(line, 2);
        context.draft.spec.check.method = CheckMethod::Http(line);
    }
}

fn tcp(context: &mut ProxyContext<'_>, line: &Line) {
    if !context.report.too_many(line, 2, "option tcp-check") {
        context.draft.spec.check.method = CheckMethod::Tcp;
    }
}

fn log(context: &mut ProxyContext<'_>, line: &Line) {
    boolean(context, line, |context, on| context.draft.spec.check.log = on);
}
