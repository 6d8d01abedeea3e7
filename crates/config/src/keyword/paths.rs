//! `default-path` (configuration manual, section 3.1): the base directory of relative file names, at any line. Must
//! never access the file system.

use super::global::GlobalContext;
use crate::document::{Document, Line, Sources};
use crate::span::Span;
use std::borrow::Cow;

/// Base directory of relative file names.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Start {
    /// The working directory at startup.
    Current,
    /// The directory of the configuration file.
    Config,
    /// The parent of that directory.
    Parent,
    /// The given directory.
    Origin(String),
}

/// Every `default-path` of a configuration, with its place: file and line.
#[derive(Debug, Default)]
pub(crate) struct Paths(Vec<((u32, u32), Start)>);

const MODES: &str = "supported modes include 'current', 'config', 'parent', and 'origin'.";

fn start(line: &Line) -> Result<Start, String> {
    match line.text(1) {
        "current" => Ok(Start::Current),
        "config" => Ok(Start::Config),
        "parent" => Ok(Start::Parent),
        "origin" if line.text(2).is_empty() => {
            Err("'default-path origin' expects a directory as an argument.".to_owned())
        }
        "origin" => Ok(Start::Origin(line.text(2).to_owned())),
        "" => Err(format!("missing default-path mode '' for 'default-path', {MODES}")),
        other => Err(format!("unsupported default-path mode '{other}' for 'default-path', {MODES}")),
    }
}

/// Reports the error of a line, which [`Paths`] has already read.
pub(super) fn default_path(context: &mut GlobalContext<'_>, line: &Line) {
    if let Err(message) = start(line) {
        context.report.alert(line.span(1), message);
    }
}

impl Paths {
    /// Collects the `default-path` lines of a document.
    pub(crate) fn of(document: &Document) -> Self {
        let sections = document.sections.iter().filter(|section| section.line.keyword() == "global");
        let lines = sections.flat_map(|section| &section.body).filter(|line| line.keyword() == "default-path");
        Self(lines.filter_map(|line| Some((place(line.span(0)), start(line).ok()?))).collect())
    }

    /// Returns the base directory of relative names at `span`, with a trailing slash; `None` for the working directory.
    pub(crate) fn folder(&self, span: Span, sources: &Sources) -> Option<String> {
        match self.full("", span, sources) {
            Cow::Borrowed(_) => None,
            Cow::Owned(folder) => Some(folder),
        }
    }

    /// Returns the path to open for a file that is named at `span`.
    pub(crate) fn full<'a>(&self, path: &'a str, span: Span, sources: &Sources) -> Cow<'a, str> {
        let before = self.0.iter().take_while(|(at, _)| *at < place(span));
        let Some((_, start)) = before.last().filter(|_| !path.starts_with('/')) else { return Cow::Borrowed(path) };
        let file = sources.file(span).map_or("", |file| file.name.as_str());
        let folder = file.rfind('/').map(|slash| &file[..=slash]);
        match (start, folder) {
            (Start::Current, _) | (Start::Config, None) => Cow::Borrowed(path),
            (Start::Config, Some(folder)) => Cow::Owned(format!("{folder}{path}")),
            (Start::Parent, folder) => Cow::Owned(format!("{}../{path}", folder.unwrap_or_default())),
            (Start::Origin(folder), _) => Cow::Owned(format!("{}/{path}", folder.trim_end_matches('/'))),
        }
    }
}

fn place(span: Span) -> (u32, u32) {
    (span.file, span.line)
}

#[cfg(test)]
mod tests {
    use crate::environment::Environment;
    use crate::keyword::{SpecOptions, specify};
    use crate::language::{InputFile, read};
    use crate::options::LanguageOptions;
    use std::io;

    /// A reader that finds every file and returns its name as the content.
    fn name_as_content(path: &str, _: u64) -> io::Result<Vec<u8>> {
        Ok(format!("HTTP/1.1 503 No\r\ncontent-length: {}\r\n\r\n{path}", path.len()).into_bytes())
    }

    fn opened(file: &str, directives: &str, path: &str) -> String {
        let text = format!("global\n{directives}\ndefaults\n errorfile 503 {path}\n\nfrontend f\n bind :1\n");
        let files = [InputFile { name: file.into(), bytes: text.into_bytes() }];
        let mut found = Vec::new();
        let (sources, document) = read(&files, &mut Environment::new(), &LanguageOptions::default(), &mut found);
        let spec = specify(
            &sources,
            &document,
            &SpecOptions { read_file: name_as_content, ..SpecOptions::default() },
            &mut found,
        );
        let page = spec.proxies.first().and_then(|proxy| proxy.error_files.first()).expect("a page");
        let content = String::from_utf8_lossy(&page.content).into_owned();
        content.split("\r\n\r\n").nth(1).unwrap_or_default().to_owned()
    }

    #[test]
    fn relative_names_start_where_they_are_told_to() {
        let rows = [
            ("/etc/w/a.cfg", "", "503.http", "503.http"),
            ("/etc/w/a.cfg", "default-path current", "503.http", "503.http"),
            ("/etc/w/a.cfg", "default-path config", "e/503.http", "/etc/w/e/503.http"),
            ("a.cfg", "default-path config", "503.http", "503.http"),
            ("/etc/w/a.cfg", "default-path parent", "503.http", "/etc/w/../503.http"),
            ("a.cfg", "default-path parent", "503.http", "../503.http"),
            ("a.cfg", "default-path origin /srv/w", "503.http", "/srv/w/503.http"),
            ("a.cfg", "default-path origin /srv/w/", "/503.http", "/503.http"),
            ("a.cfg", "default-path origin /srv\ndefault-path current", "503.http", "503.http"),
        ];
        for (file, directives, path, expected) in rows {
            assert_eq!(opened(file, directives, path), expected, "{directives} in {file}");
        }
    }
}
