//! Configurations that are refused, and the lines of their errors. Must never serve one.

use config::diagnostic::Diagnostic;
use config::document::Sources;
use config::environment::Environment;
use config::{InputFile, LoadOptions};

use super::{LIMITS, NoNames, PREFIX, Worlds};

/// The texts of the alerts.
pub fn alerts(found: &[Diagnostic], sources: &Sources) -> Vec<String> {
    let text = |diagnostic: &Diagnostic| {
        let mut text = String::new();
        diagnostic.render(sources, 0, &mut text);
        text
    };
    found.iter().filter(|diagnostic| diagnostic.is_alert()).map(text).collect()
}

impl Worlds {
    /// The lines of the sections that are refused, from 0.
    pub fn refused_lines(&self) -> Vec<usize> {
        let file = InputFile { name: "haproxy.cfg".to_owned(), bytes: self.text.clone().into_bytes() };
        let loaded = config::load(&[file], Environment::new(), &LoadOptions::default());
        let mut found = loaded.diagnostics.clone();
        drop(policy::compile(&loaded.spec, &mut NoNames(self.services()), &LIMITS, &mut found));
        let before = PREFIX.lines().count() + 1;
        let line = |text: &String| text.split_once("haproxy.cfg:")?.1.split(']').next()?.parse::<usize>().ok();
        alerts(&found, &loaded.sources).iter().filter_map(line).map(|line| line.saturating_sub(before)).collect()
    }
}
