//! Keywords: turns a [`Document`] into a [`Spec`], and reports all errors as diagnostics in
//! one pass. Owns the tables of all keywords of HAProxy, which are used by parser, suggestions, `-dK` and the reference
//! manual. Must never resolve a name or open a socket.
//!
//! To add a keyword: write its function in its family's file and turn its row from `not_yet` into `supported`, then add
//! a fixture in `tests/keywords`.

pub mod anonymous;
mod argument;
mod bind;
pub mod catalogue;
mod check_method;
pub mod crt_list;
mod elsewhere;
mod error_page;
mod filter;
mod global;
mod haterm;
mod inheritance;
pub(crate) mod load_options;
mod log_line;
mod negation;
mod option;
mod otel_file;
mod paths;
mod place;
mod proxy;
pub mod reference;
mod report;
pub mod rule;
mod scoped_file;
mod section;
mod sections;
mod server;
mod source;
mod spoe;
mod stick_table;
mod table;
pub(crate) mod tls;
mod udp_lb;
mod udp_quic;
mod upgrade;
mod verify;

pub use error_page::fault as error_page_fault;
pub use otel_file::read_files as read_otel_files;
pub use server::added::{keywords as added_server_keywords, read as read_added_server};
pub use spoe::read_files as read_spoe_files;
pub use table::SupportLevel;

use crate::diagnostic::Diagnostic;
use crate::document::{Document, Sources};
use crate::environment::Environment;
use crate::span::Span;
use crate::spec::Spec;
use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read as _};

/// Access to the environment of the process.
#[derive(Debug, Clone)]
pub struct SpecOptions {
    /// Reads a file that the configuration names (`errorfile`), up to `limit` bytes.
    pub read_file: fn(path: &str, limit: u64) -> io::Result<Vec<u8>>,
    /// Whether a network namespace of this name exists and can be opened.
    pub has_namespace: fn(name: &str) -> bool,
    /// The name of this instance among its peers, unless `localpeer` sets another one.
    pub local_peer: String,
    /// The name was given on the command line: `localpeer` does not change it.
    pub local_peer_is_fixed: bool,
    /// The configuration is checked and not run: errors that HAProxy reports at startup only are ignored.
    pub check_only: bool,
}

impl Default for SpecOptions {
    fn default() -> Self {
        Self {
            read_file,
            has_namespace: bind::namespace_exists,
            local_peer: String::new(),
            local_peer_is_fixed: false,
            check_only: false,
        }
    }
}

fn read_file(path: &str, limit: u64) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    File::open(crate::text::to_os_string(path))?.take(limit).read_to_end(&mut content)?;
    Ok(content)
}

/// Context that every section is read with.
#[derive(Clone, Copy)]
pub(crate) struct ReadContext<'a> {
    pub(crate) sources: &'a Sources,
    pub(crate) environment: &'a Environment,
    pub(crate) options: &'a SpecOptions,
    /// Base directories of relative file names.
    pub(crate) paths: &'a paths::Paths,
    /// `tune.bufsize` as far as it has been read.
    pub(crate) bufsize: u32,
    /// The proxies before the current one.
    pub(crate) earlier: &'a [proxy::ProxyDraft],
    /// The name of this instance among its peers, as far as it has been read.
    pub(crate) local_peer: &'a str,
    /// State of `expose-experimental-directives`.
    pub(crate) experimental: &'a Experimental,
    /// A section other than `global` precedes.
    pub(crate) follows_sections: bool,
}

/// The end of messages about `proto qmux` without that.
pub(crate) const QMUX_IS_EXPERIMENTAL: &str =
    "'qmux' protocol is experimental, must be allowed via a global 'expose-experimental-directives'.";

/// Whether experimental keywords are allowed (`expose-experimental-directives`), and whether any is used.
#[derive(Debug, Default)]
pub(crate) struct Experimental {
    allowed: Cell<Option<Span>>,
    used: Cell<bool>,
}

impl Experimental {
    /// Allows them from the line at `span`.
    pub(crate) fn allow(&self, span: Span) {
        self.allowed.set(Some(span));
    }

    /// Marks an experimental keyword as used; returns whether it is allowed.
    pub(crate) fn permits(&self) -> bool {
        self.used.set(true);
        self.allowed.get().is_some()
    }

    /// Returns the line that allows experimental keywords if none is used.
    fn allowed_in_vain(&self) -> Option<Span> {
        self.allowed.get().filter(|_| !self.used.get())
    }
}

impl ReadContext<'_> {
    /// Reads a file that is named at `span`, up to `limit` bytes.
    pub(crate) fn read_file(&self, path: &str, span: Span, limit: u64) -> io::Result<Vec<u8>> {
        (self.options.read_file)(&self.paths.full(path, span, self.sources), limit)
    }

    /// Returns the words of a rule, from the one at `at` on.
    pub(crate) fn rule_line(&self, line: &crate::document::Line, at: usize) -> crate::spec::RuleLineSpec {
        let words = line.words.get(at..).unwrap_or_default().to_vec();
        let span = line.whole();
        let folder = self.paths.folder(span, self.sources);
        crate::spec::RuleLineSpec { words, span, folder, inherited: false }
    }

    /// Returns `file:line`, as messages refer to another place.
    pub(crate) fn place(&self, span: Span) -> String {
        format!("{}:{}", self.sources.file(span).map_or("", |file| &file.name), span.line)
    }
}

/// Returns the error in a `guid`, or `None` if it is valid.
pub fn guid_fault(text: &str) -> Option<String> {
    let permitted = |found: &char| found.is_ascii_alphanumeric() || ".:-_".contains(*found);
    if text.is_empty() || text.len() > 127 {
        return Some("invalid length".to_owned());
    }
    text.chars().find(|found| !permitted(found)).map(|found| format!("invalid character '{found}'"))
}

/// Default of `tune.bufsize`, in bytes.
pub(crate) const DEFAULT_BUFSIZE: u32 = 16_384;

/// Reads a whole configuration. Errors are added to `out`; the specification contains everything that could be read.
pub fn specify(sources: &Sources, document: &Document, options: &SpecOptions, out: &mut Vec<Diagnostic>) -> Spec {
    sections::read(sources, document, options, out)
}

/// Returns the first character of a name that is not allowed in the name of a proxy or a server.
pub fn bad_name_character(name: &str) -> Option<char> {
    name.chars().find(|&found| !is_name_character(found))
}

/// Whether a character is allowed in the name of a proxy or a server.
fn is_name_character(found: char) -> bool {
    found.is_ascii_alphanumeric() || matches!(found, '-' | '_' | '.' | ':')
}
