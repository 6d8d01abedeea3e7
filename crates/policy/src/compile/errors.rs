//! The answers to errors: HAProxy's pages, and the files that replace them.

use crate::program::ErrorPages;
use config::spec::ErrorFileSpec;

/// A proxy's pages.
pub(super) fn pages(files: &[ErrorFileSpec]) -> ErrorPages {
    let mut pages = ErrorPages::default();
    for file in files {
        pages.set(file.status, file.content.as_slice());
    }
    pages
}
