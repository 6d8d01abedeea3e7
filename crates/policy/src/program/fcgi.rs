//! FastCGI applications, ready to be asked (configuration manual, section 10). Must never hold what belongs to one request.

use expression::condition::Condition;
use expression::log_format::LogFormat;
use expression::pattern::Regex;
use wire::fcgi;

use super::LogTarget;

/// An `fcgi-app` section, as a backend uses it.
#[derive(Debug, Clone, PartialEq)]
pub struct FcgiApp {
    /// Its place in [`super::Program::fcgi_logs`].
    pub index: usize,
    /// Its name.
    pub name: Box<str>,
    /// `docroot`.
    pub docroot: Box<[u8]>,
    /// `index`.
    pub script: Option<Box<[u8]>>,
    /// `path-info`: its groups are the script's name and the path behind that.
    pub path_info: Option<Regex>,
    /// `set-param` and `pass-header`, in order.
    pub rules: Box<[FcgiRule]>,
    /// `option keep-conn`.
    pub keep_conn: bool,
    /// `option get-values`.
    pub get_values: bool,
    /// `option mpxs-conns`: a connection carries several requests at a time, where the application permits it.
    pub shares_connections: bool,
    /// `option max-reqs`: so many of them, unless the application says another number.
    pub max_requests: usize,
    /// `log-stderr` is written.
    pub logs_errors: bool,
    /// The parameters that are the same for all its requests, as they are sent. See [`FcgiApp::constants`].
    pub constant: Box<[u8]>,
}

/// What `SERVER_SOFTWARE` says.
const SOFTWARE: &str = concat!("Weir ", env!("CARGO_PKG_VERSION"));

impl FcgiApp {
    /// With its constant parameters.
    pub(crate) fn complete(mut self) -> Self {
        let mut constant = Vec::new();
        self.constants()
            .filter(|(_, value)| !value.is_empty())
            .for_each(|(name, value)| fcgi::push_parameter(name, value, &mut constant));
        self.constant = constant.into();
        self
    }

    /// Parameters that are the same for all its requests, unless a rule sets them: names and values.
    pub fn constants(&self) -> impl Iterator<Item = (&'static [u8], &[u8])> {
        let all: [(&'static [u8], &[u8]); 3] = [
            (b"GATEWAY_INTERFACE", b"CGI/1.1"),
            (b"DOCUMENT_ROOT", &self.docroot),
            (b"SERVER_SOFTWARE", SOFTWARE.as_bytes()),
        ];
        all.into_iter()
    }
}

/// A rule of an application.
#[derive(Debug, Clone, PartialEq)]
pub struct FcgiRule {
    /// What it does.
    pub action: FcgiAction,
    /// When; `None`: always.
    pub condition: Option<Condition>,
}

/// What a rule of an application does.
#[derive(Debug, Clone, PartialEq)]
pub enum FcgiAction {
    /// `set-param`: the name in capital letters.
    SetParameter(Box<[u8]>, LogFormat),
    /// `pass-header`: the name in small letters.
    PassHeader(Box<[u8]>),
}

/// Where an application's standard error is logged.
#[derive(Debug, Clone, PartialEq)]
pub struct FcgiLog {
    /// Its name, which is the tag of its lines.
    pub name: Box<str>,
    /// `log-stderr`.
    pub targets: Vec<LogTarget>,
}
