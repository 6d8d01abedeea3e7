//! A response as a rule or `http-error` describes it. Must never build one.

use super::response::Reply;
use expression::log_format::LogFormat;
use std::sync::Arc;

/// A response defined by a rule.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    pub status: u16,
    /// `content-type`.
    pub content_type: Option<Box<[u8]>>,
    pub body: Body,
    /// `hdr`: additional fields.
    pub fields: Vec<(Box<[u8]>, LogFormat)>,
}

/// The source of a response's body.
#[derive(Debug, Clone, PartialEq)]
pub enum Body {
    /// The proxy's error page for the status (`default-errorfiles`).
    Default,
    Empty,
    /// The complete response of a file (`errorfile`, `errorfiles`).
    Page(Arc<Reply<'static>>),
    /// The complete response and the length of its body, the same for every client.
    Written(Reply<'static>, usize),
    /// `string` and `file`.
    Bytes(Box<[u8]>),
    /// `lf-string` and `lf-file`.
    Format(LogFormat),
}
