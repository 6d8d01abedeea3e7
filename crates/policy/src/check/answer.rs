//! The kinds of responses that checks of protocols expect. Must never evaluate one.

/// The expected kind of response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// A Redis reply to PING.
    Redis,
    /// The greeting of an SMTP server.
    SmtpGreeting,
    /// The reply of an SMTP server to a command, on one or several lines.
    SmtpReply,
    /// The reply of an SMTP server to QUIT.
    SmtpLast,
    /// The response of PostgreSQL to a startup message.
    Postgres,
    /// The response of an LDAP server to an anonymous bind.
    Ldap,
    /// The handshake of a MySQL server.
    MysqlGreeting,
    /// The response of a MySQL server to the login, after its handshake.
    MysqlReply,
    /// The responses of a MySQL server to the login and to a statement.
    MysqlResult,
    /// A TLS record.
    Tls,
    /// The hello of a SPOE agent.
    Spop {
        /// The advertised maximum frame size in bytes.
        largest: u64,
    },
}
