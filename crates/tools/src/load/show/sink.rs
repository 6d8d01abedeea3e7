//! Destination of text. Must never treat a closed pipe as an error.

use crate::Outcome;
use crate::load::plan::ReportSink;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::PathBuf;

#[derive(Debug)]
pub enum Sink {
    Stdout,
    Stderr,
    /// A newly created file.
    File(File, PathBuf),
}

impl Sink {
    /// Opens a destination.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn open(place: &ReportSink) -> Result<Self, Outcome> {
        match place {
            ReportSink::Stdout => Ok(Self::Stdout),
            ReportSink::File(path) => match File::create(path) {
                Ok(file) => Ok(Self::File(file, path.clone())),
                Err(error) => Err(Outcome::Failed(format!("cannot write '{}': {error}", path.display()))),
            },
        }
    }

    /// Writes the whole text and flushes it.
    ///
    /// # Errors
    /// The outcome of the run: successful if a pipe has no reader.
    pub fn write(&mut self, text: &str) -> Result<(), Outcome> {
        let written = match self {
            Self::Stdout => all(&mut io::stdout().lock(), text),
            Self::Stderr => all(&mut io::stderr().lock(), text),
            Self::File(file, _) => all(file, text),
        };
        written.map_err(|error| match self {
            Self::Stdout | Self::Stderr if error.kind() == ErrorKind::BrokenPipe => Outcome::Done,
            Self::Stdout => Outcome::Failed(format!("cannot write to standard output: {error}")),
            Self::Stderr => Outcome::Failed(format!("cannot write to standard error: {error}")),
            Self::File(_, path) => Outcome::Failed(format!("cannot write '{}': {error}", path.display())),
        })
    }
}

fn all(out: &mut impl Write, text: &str) -> io::Result<()> {
    out.write_all(text.as_bytes())?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_written_is_named() {
        let open = |path: &str| Sink::open(&ReportSink::File(path.into()));
        assert!(
            matches!(open("/nonexistent/x"), Err(Outcome::Failed(why)) if why.starts_with("cannot write '/nonexistent/x'"))
        );
        let mut full = open("/dev/full").expect("it opens");
        assert!(matches!(full.write("x"), Err(Outcome::Failed(why)) if why.starts_with("cannot write '/dev/full'")));
    }
}
