//! FastCGI applications (configuration manual, section 10). Must never hold state of a request.

use expression::condition::Condition;
use expression::log_format::LogFormat;
use expression::pattern::Regex;
use wire::fcgi;

use super::LogTarget;

/// An `fcgi-app` section, compiled for a backend.
#[derive(Debug, Clone, PartialEq)]
pub struct FcgiApp {
    /// Index in [`super::Program::fcgi_logs`].
    pub index: usize,
    pub name: Box<str>,
    /// `docroot`.
    pub docroot: Box<[u8]>,
    /// `index`.
    pub script: Option<Box<[u8]>>,
    /// `path-info`: its groups are the script name and the path after it.
    pub path_info: Option<Regex>,
    /// `set-param` and `pass-header`, in order.
    pub rules: Box<[FcgiRule]>,
    /// `option keep-conn`.
    pub keep_conn: bool,
    /// `option get-values`.
    pub get_values: bool,
    /// `option mpxs-conns`: a connection multiplexes requests, if the application permits it.
    pub shares_connections: bool,
    /// `option max-reqs`: maximum number of concurrent requests per connection, unless the application specifies
    /// another number.
    pub max_requests: usize,
    /// `log-stderr` is specified.
    pub logs_errors: bool,
    /// The encoded parameters that are the same for all requests. See [`FcgiApp::constants`].
    pub constant: Box<[u8]>,
}

/// The value of `SERVER_SOFTWARE`.
const SOFTWARE: &str = concat!("Weir ", env!("CARGO_PKG_VERSION"));

impl FcgiApp {
    /// Adds the encoded constant parameters.
    pub(crate) fn complete(mut self) -> Self {
        let mut constant = Vec::new();
        self.constants()
            .filter(|(_, value)| !value.is_empty())
            .for_each(|(name, value)| fcgi::push_parameter(name, value, &mut constant));
        self.constant = constant.into();
        self
    }

    /// Returns the names and values of parameters that are the same for all requests, unless a rule sets them.
    pub fn constants(&self) -> impl Iterator<Item = (&'static [u8], &[u8])> {
        let all: [(&'static [u8], &[u8]); 3] = [
            (b"GATEWAY_INTERFACE", b"CGI/1.1"),
            (b"DOCUMENT_ROOT", &self.docroot),
            (b"SERVER_SOFTWARE", SOFTWARE.as_bytes()),
        ];
        all.into_iter()
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct FcgiRule {
    pub action: FcgiAction,
    /// The condition; `None` for none.
    pub condition: Option<Condition>,
}

/// The action of an application's rule.
#[derive(Debug, Clone, PartialEq)]
pub enum FcgiAction {
    /// `set-param`: the name in upper case.
    SetParameter(Box<[u8]>, LogFormat),
    /// `pass-header`: the name in lower case.
    PassHeader(Box<[u8]>),
}

/// The log targets for an application's standard error.
#[derive(Debug, Clone, PartialEq)]
pub struct FcgiLog {
    /// The application's name, used as the tag of its lines.
    pub name: Box<str>,
    /// `log-stderr`.
    pub targets: Vec<LogTarget>,
}
