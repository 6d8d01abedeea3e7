//! The answers to errors: HAProxy's pages, and the files that replace them.

use crate::program::ErrorPages;
use config::spec::ErrorFileSpec;
use wire::http::error_pages::PAGES;

/// A proxy's pages.
pub(super) fn pages(files: &[ErrorFileSpec]) -> ErrorPages {
    let mut pages = ErrorPages::default();
    for page in PAGES {
        pages.set(page.status, page.message());
    }
    for file in files {
        pages.set(file.status, file.content.as_slice());
    }
    pages
}
