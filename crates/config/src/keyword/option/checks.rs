//! Options that choose a health check.

use super::{OptionKeyword, fixed, not_yet, switch};
use crate::keyword::place::places::BACK;

/// Every keyword of the family.
pub(super) const TABLE: &[OptionKeyword] = &[
    not_yet(fixed(BACK), "external-check", "", "Checks servers with a program."),
    not_yet(fixed(BACK), "httpchk", "[<method>] [<uri>] [<version>]", "Checks servers with an HTTP request."),
    not_yet(fixed(BACK), "ldap-check", "", "Checks LDAP servers."),
    not_yet(switch(BACK), "log-health-checks", "", "Logs every change of a health check."),
    not_yet(fixed(BACK), "mysql-check", "[user <name> [{ post-41 | pre-41 }]]", "Checks MySQL servers."),
    not_yet(fixed(BACK), "pgsql-check", "user <name>", "Checks PostgreSQL servers."),
    not_yet(fixed(BACK), "redis-check", "", "Checks Redis servers."),
    not_yet(fixed(BACK), "smtpchk", "[{ HELO | EHLO } <domain>]", "Checks SMTP servers."),
    not_yet(fixed(BACK), "spop-check", "", "Checks SPOP agents."),
    not_yet(fixed(BACK), "ssl-hello-chk", "", "Checks servers with an SSLv3 greeting."),
    not_yet(fixed(BACK), "tcp-check", "", "Checks servers as tcp-check lines say."),
];
