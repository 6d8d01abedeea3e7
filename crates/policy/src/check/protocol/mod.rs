//! Checks that speak the protocol of a service (configuration manual, "option mysql-check" and its kin): what they send,
//! and what the answers mean. Must never open a connection.

mod grpc;
mod ldap;
mod mysql;
mod spop;
#[cfg(test)]
mod tests;
mod text;
mod tls;

pub use grpc::GrpcAnswer;

use super::{CheckStep, Connect, Content, Expect, Payload, Wanted};
use config::spec::ProtocolCheck;
use live::health::CheckStatus;

/// What an answer is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// A line of Redis that answers a ping.
    Redis,
    /// What an SMTP server begins with.
    SmtpGreeting,
    /// Its answer to a command, on one line or several.
    SmtpReply,
    /// The line that it ends with.
    SmtpLast,
    /// What PostgreSQL says to a new user.
    Postgres,
    /// What an LDAP server says to an anonymous one.
    Ldap,
    /// What MySQL begins with.
    MysqlGreeting,
    /// What it says to a new user, behind its greeting.
    MysqlReply,
    /// A TLS record.
    Tls,
    /// What an agent of the stream processing offload protocol says to a greeting.
    Spop {
        /// The largest frame that it was offered, in bytes.
        largest: u64,
    },
}

/// What an answer means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judgement {
    /// More may come.
    Wait,
    /// It is fine.
    Passed {
        /// The application's code.
        code: i64,
        /// More, for people; `None`: what was said before still holds.
        info: Option<String>,
    },
    /// It is not.
    Failed {
        /// How the check ends.
        status: CheckStatus,
        /// The application's code.
        code: i64,
        /// More, for people.
        info: String,
    },
    /// Nothing came at all, and there is no other word for it.
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
    /// Judges what was received so far. `complete`: no more will come, or no more has room.
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
            Self::Tls => tls::judge(received, complete),
            Self::Spop { largest } => spop::judge(received, complete, largest),
        }
    }

    fn step(self) -> CheckStep {
        let base = Expect::new(Wanted::Protocol(self));
        let (ok, timeout) = match self {
            Self::Tls => (CheckStatus::L6Ok, CheckStatus::L6Timeout),
            _ => (base.ok, base.timeout),
        };
        CheckStep::Expect(Box::new(Expect { ok, timeout, ..base }))
    }
}

/// The script of a check of the backend of that name. `bufsize`: how much of an answer is looked at.
pub(crate) fn script(check: &ProtocolCheck, backend: &str, bufsize: usize) -> Vec<CheckStep> {
    let send = |bytes: Vec<u8>| CheckStep::Send(Payload { content: Content::Bytes(bytes.into()), comment: None });
    // They are left in order, not by a reset: servers may take that for an attack.
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
        ProtocolCheck::Mysql { user: None } => vec![connect(), Answer::MysqlGreeting.step()],
        ProtocolCheck::Mysql { user: Some((user, version)) } => {
            // A proxy in between may wait for the login before the server is asked at all.
            vec![connect(), send(mysql::login(user, *version)), Answer::MysqlGreeting.step(), Answer::MysqlReply.step()]
        }
        ProtocolCheck::SslHello => vec![send(tls::hello()), Answer::Tls.step()],
        ProtocolCheck::Spop => {
            let largest = spop::largest(bufsize);
            vec![connect(), send(spop::hello(largest)), Answer::Spop { largest }.step()]
        }
        ProtocolCheck::Grpc { service, authority } => grpc::steps(service, authority.as_deref().unwrap_or(backend)),
    }
}

/// Bytes of an answer as messages show them, up to the end of the line.
fn line(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| matches!(byte, b'\r' | b'\n' | 0)).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}
