//! Email alerts as written (configuration manual, sections 4.2 "email-alert" and 12.3). Must never send one.

use super::{AddressSpec, LogLevel};
use crate::span::{Span, Spanned};

/// A `mailers` section.
#[derive(Debug, Clone, PartialEq)]
pub struct MailersSpec {
    pub span: Span,
    pub name: String,
    /// Names and addresses of mail servers.
    pub servers: Vec<(String, Spanned<AddressSpec>)>,
    /// `timeout mail`, milliseconds; default 10000.
    pub timeout: u64,
}

/// `email-alert`: email alerts of a proxy.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EmailAlertSpec {
    /// `email-alert mailers`.
    pub mailers: Option<Spanned<String>>,
    /// `email-alert from`.
    pub from: Option<Spanned<String>>,
    /// `email-alert to`.
    pub to: Option<Spanned<String>>,
    /// `email-alert level`; `None`: alert.
    pub level: Option<Spanned<LogLevel>>,
    /// `email-alert myhostname`.
    pub hostname: Option<Spanned<String>>,
}
