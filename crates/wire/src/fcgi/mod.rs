//! FastCGI (specification 1.0) between a web server and a responder: decodes records from arbitrarily fragmented bytes,
//! encodes a request as records, and applies the CGI fields of a response's head (RFC 3875, section 6). Must never know
//! a connection, or choose the value of a parameter.

mod answer;
mod decode;
mod encode;
mod values;

pub use answer::{PREFIX, apply_cgi_fields};
pub use decode::{Decoder, Malformed, Piece, ProtocolStatus, take_whole};
pub use encode::{
    RequestWriter, abort_request, body_record, end_of_body, ends_body, get_values, keeps_connection, push_parameter,
    share_request,
};
pub use values::{Values, parameter};

/// The version of every record (`FCGI_VERSION_1`).
pub const VERSION: u8 = 1;

/// Length of a record header in bytes.
pub const HEADER: usize = 8;

/// Maximum length of a record's content in bytes.
pub const MAX_CONTENT: usize = 65_535;

/// Request ID on connections that carry one request at a time.
pub const REQUEST: u16 = 1;

/// Whether an application receives a field of that lower-case name only if `pass-header` names it: credentials and
/// connection-specific fields.
pub fn is_hidden(name: &[u8]) -> bool {
    matches!(
        name,
        b"authorization"
            | b"connection"
            | b"expect"
            | b"keep-alive"
            | b"proxy"
            | b"proxy-authenticate"
            | b"proxy-authorization"
            | b"te"
            | b"transfer-encoding"
            | b"upgrade"
    )
}

/// Types of records (specification, section 8).
pub mod kind {
    /// `FCGI_BEGIN_REQUEST`.
    pub const BEGIN_REQUEST: u8 = 1;
    /// `FCGI_ABORT_REQUEST`.
    pub const ABORT_REQUEST: u8 = 2;
    /// `FCGI_END_REQUEST`.
    pub const END_REQUEST: u8 = 3;
    /// `FCGI_PARAMS`.
    pub const PARAMS: u8 = 4;
    /// `FCGI_STDIN`.
    pub const STDIN: u8 = 5;
    /// `FCGI_STDOUT`.
    pub const STDOUT: u8 = 6;
    /// `FCGI_STDERR`.
    pub const STDERR: u8 = 7;
    /// `FCGI_GET_VALUES`.
    pub const GET_VALUES: u8 = 9;
    /// `FCGI_GET_VALUES_RESULT`.
    pub const GET_VALUES_RESULT: u8 = 10;
}

/// Returns the header of a record without padding.
pub fn header(kind: u8, request: u16, length: u16) -> [u8; HEADER] {
    let ([id_high, id_low], [high, low]) = (request.to_be_bytes(), length.to_be_bytes());
    [VERSION, kind, id_high, id_low, high, low, 0, 0]
}
