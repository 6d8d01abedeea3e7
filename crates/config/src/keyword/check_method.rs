//! Methods of health checks, as named by `option` lines of proxies and `type` lines of `healthcheck` sections
//! (configuration manual, sections 4.2 and 12.9). Must never read a rule of a script.

use super::ReadContext;
use super::report::Report;
use crate::document::Line;
use crate::spec::{CheckMethod, MysqlVersion, ProtocolCheck};

/// Reads the method named by the second word. Returns `None` if there is no such method, or after an error, which has
/// been reported.
pub(crate) fn read(line: &Line, around: ReadContext<'_>, report: &mut Report<'_>) -> Option<CheckMethod> {
    let most = |report: &mut Report<'_>, words| !report.too_many(line, words, &format!("option {}", line.text(1)));
    let check = match line.text(1) {
        "httpchk" => return most(report, 6).then(|| CheckMethod::Http(around.rule_line(line, 2))),
        "tcp-check" => return most(report, 2).then_some(CheckMethod::Tcp),
        "external-check" => return most(report, 2).then_some(CheckMethod::Program),
        "redis-check" => most(report, 2).then_some(ProtocolCheck::Redis),
        "ldap-check" => most(report, 2).then_some(ProtocolCheck::Ldap),
        "ssl-hello-chk" => most(report, 2).then_some(ProtocolCheck::SslHello),
        "spop-check" => most(report, 2).then_some(ProtocolCheck::Spop),
        "smtpchk" => most(report, 4).then(|| smtp(line)),
        "pgsql-check" => postgres(line, report).filter(|_| most(report, 4)),
        "mysql-check" => mysql(line, report),
        "grpc-check" => grpc(line, report),
        _ => None,
    };
    check.map(CheckMethod::Protocol)
}

/// Without a domain, or with a greeting other than `EHLO` and `HELO`, the default applies.
fn smtp(line: &Line) -> ProtocolCheck {
    let (hello, domain) = match (line.text(2), line.text(3)) {
        (hello @ ("EHLO" | "HELO"), domain) if !domain.is_empty() => (hello, domain),
        _ => ("HELO", "localhost"),
    };
    ProtocolCheck::Smtp { hello: hello.to_owned(), domain: domain.to_owned() }
}

fn postgres(line: &Line, report: &mut Report<'_>) -> Option<ProtocolCheck> {
    if line.text(2) != "user" || line.text(3).is_empty() {
        report.alert(line.span(2), "'option pgsql-check' expects 'user <username>' as argument.");
        return None;
    }
    Some(ProtocolCheck::Postgres { user: line.text(3).to_owned() })
}

fn mysql(line: &Line, report: &mut Report<'_>) -> Option<ProtocolCheck> {
    let user = match (line.text(2), line.text(3)) {
        ("", _) => return Some(ProtocolCheck::Mysql { user: None, query: None }),
        ("user", "") => {
            report.alert(line.span(3), "'option mysql-check user' expects <username> as argument.");
            return None;
        }
        ("user", user) => user.to_owned(),
        (other, _) => {
            let message = format!("'option mysql-check' only supports optional values: 'user' (got '{other}').");
            report.alert(line.span(2), message);
            return None;
        }
    };
    let (version, next) = match line.text(4) {
        "" | "query" => (MysqlVersion::Post41, 4),
        "post-41" => (MysqlVersion::Post41, 5),
        "pre-41" => (MysqlVersion::Pre41, 5),
        "post-80" => (MysqlVersion::Post80, 5),
        other => {
            let message = format!("keyword 'user' only supports 'post-41', 'pre-41' and 'post-80' (got '{other}').");
            report.alert(line.span(4), message);
            return None;
        }
    };
    let query = match (line.text(next), line.text(next + 1)) {
        ("query", "") => {
            report.alert(
                line.span(next + 1),
                "'option mysql-check ... query' expects a statement, such as \"SELECT 1\".",
            );
            return None;
        }
        ("query", query) => Some(query.to_owned()),
        _ => None,
    };
    let last = if query.is_some() { next + 2 } else { 5 };
    let user = Some((user, version));
    (!report.too_many(line, last, "option mysql-check")).then_some(ProtocolCheck::Mysql { user, query })
}

fn grpc(line: &Line, report: &mut Report<'_>) -> Option<ProtocolCheck> {
    let (mut service, mut authority) = (None, None);
    for at in (2..line.words.len()).step_by(2) {
        let (name, value) = (line.text(at), line.text(at + 1));
        let place = match name {
            "service" => &mut service,
            "authority" => &mut authority,
            other => {
                let message = format!(
                    "'option grpc-check' only supports optional values: 'service', 'authority' (got '{other}')."
                );
                report.alert(line.span(at), message);
                return None;
            }
        };
        let is_name = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'/' | b'?' | b'#' | b'@');
        let fits = !value.is_empty() && (name == "service" || value.bytes().all(is_name));
        if place.is_some() || !fits || value.len() > MOST_NAME {
            let message = format!("'option grpc-check {name}' expects one name of at most {MOST_NAME} bytes.");
            report.alert(line.span(at + 1), message);
            return None;
        }
        *place = Some(value.to_owned());
    }
    Some(ProtocolCheck::Grpc { service: service.unwrap_or_default(), authority })
}

/// Maximum length of the service name that a gRPC check sends, in bytes.
const MOST_NAME: usize = 255;
