//! Checks of specific protocols (configuration manual, "option mysql-check" and others): the requests, and the
//! evaluation of the responses. Must never open a connection.

mod grpc;
mod ldap;
mod mysql;
mod spop;
#[cfg(test)]
mod tests;
mod text;
mod tls;

pub use grpc::GrpcAnswer;

use super::answer::Answer;
use super::{CheckStep, Connect, Content, Expect, ExpectMatch, Payload};
use config::spec::ProtocolCheck;
use live::health::CheckStatus;

/// Result of evaluating a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judgement {
    /// More bytes are needed.
    Wait,
    /// The check passes.
    Passed {
        /// The application's status code.
        code: i64,
        /// Text for the log; `None` keeps the text of the previous step.
        info: Option<String>,
    },
    /// The check fails.
    Failed {
        status: CheckStatus,
        /// The application's status code.
        code: i64,
        /// Text for the log.
        info: String,
    },
    /// No bytes were received, and the protocol has no specific error for that.
    Nothing,
}

impl Judgement {
    fn passed(info: &str) -> Self {
        Self::Passed { code: 0, info: Some(info.to_owned()) }
    }

    fn wrong(code: i64, info: impl Into<String>) -> Self {
        Self::Failed { status: CheckStatus::L7Status, code, info: info.into() }
    }

    fn invalid(info: impl Into<String>) -> Self {
        Self::Failed { status: CheckStatus::L7Response, code: 0, info: info.into() }
    }
}

impl Answer {
    /// Evaluates the received bytes. `complete`: the response is complete, or the buffer is full.
    pub fn judge(self, received: &[u8], complete: bool) -> Judgement {
        match self {
            Self::Redis => text::redis(received, complete),
            Self::SmtpGreeting => text::smtp_greeting(received, complete),
            Self::SmtpReply => text::smtp_reply(received, complete, false),
            Self::SmtpLast => text::smtp_reply(received, complete, true),
            Self::Postgres => text::postgres(received, complete),
            Self::Ldap => ldap::judge(received, complete),
            Self::MysqlGreeting => mysql::greeting(received, complete),
            Self::MysqlReply => mysql::reply(received, complete),
            Self::MysqlResult => mysql::result(received, complete),
            Self::Tls => tls::judge(received, complete),
            Self::Spop { largest } => spop::judge(received, complete, largest),
        }
    }

    fn step(self) -> CheckStep {
        let base = Expect::new(ExpectMatch::Protocol(self));
        let (ok, timeout) = match self {
            Self::Tls => (CheckStatus::L6Ok, CheckStatus::L6Timeout),
            _ => (base.ok, base.timeout),
        };
        CheckStep::Expect(Box::new(Expect { ok, timeout, ..base }))
    }
}

/// Returns the script of a check for the backend with that name. `bufsize` limits the length of a response, in bytes.
pub(crate) fn script(check: &ProtocolCheck, backend: &str, bufsize: usize) -> Vec<CheckStep> {
    let send = |bytes: Vec<u8>| CheckStep::Send(Payload { content: Content::Bytes(bytes.into()), comment: None });
    // Connections are closed with FIN instead of RST, which servers may take for an attack.
    let connect = || CheckStep::Connect(Connect { default: true, linger: true, ..Connect::default() });
    match check {
        ProtocolCheck::Redis => vec![connect(), send(b"*1\r\n$4\r\nPING\r\n".to_vec()), Answer::Redis.step()],
        ProtocolCheck::Smtp { hello, domain } => vec![
            connect(),
            Answer::SmtpGreeting.step(),
            send(format!("{hello} {domain}\r\n").into_bytes()),
            Answer::SmtpReply.step(),
            send(b"QUIT\r\n".to_vec()),
            Answer::SmtpLast.step(),
        ],
        ProtocolCheck::Postgres { user } => {
            vec![connect(), send(text::startup(user)), Answer::Postgres.step()]
        }
        ProtocolCheck::Ldap => vec![connect(), send(ldap::BIND.to_vec()), Answer::Ldap.step()],
        ProtocolCheck::Mysql { user: None, .. } => vec![connect(), Answer::MysqlGreeting.step()],
        ProtocolCheck::Mysql { user: Some((user, version)), query } => {
            let last = if query.is_some() { Answer::MysqlResult } else { Answer::MysqlReply };
            // A proxy in between may wait for the login before it connects to the server.
            let packets = mysql::login(user, *version, query.as_deref());
            vec![connect(), send(packets), Answer::MysqlGreeting.step(), last.step()]
        }
        ProtocolCheck::SslHello => vec![send(tls::hello()), Answer::Tls.step()],
        ProtocolCheck::Spop => {
            let largest = spop::largest(bufsize);
            vec![connect(), send(spop::hello(largest)), Answer::Spop { largest }.step()]
        }
        ProtocolCheck::Grpc { service, authority } => grpc::steps(service, authority.as_deref().unwrap_or(backend)),
    }
}

/// Returns the bytes of a response as text for messages, up to the end of the line.
fn line(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| matches!(byte, b'\r' | b'\n' | 0)).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}
