//! FastCGI applications, ready to be asked (configuration manual, section 10). Must never hold what belongs to one request.

use expression::condition::Condition;
use expression::log_format::LogFormat;
use expression::pattern::Regex;

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
