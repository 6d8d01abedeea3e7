//! The answers that Weir gives itself when it has none from a server: HAProxy's pages, or the files of `errorfile`.

use std::sync::Arc;

/// A proxy's pages: whole answers, sent as they are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ErrorPages {
    /// By status, ascending.
    pages: Vec<(u16, Arc<[u8]>)>,
}

impl ErrorPages {
    /// No pages at all.
    pub const fn new() -> Self {
        Self { pages: Vec::new() }
    }

    /// Sets one page. Empty content means that nothing is sent: the connection is only closed.
    pub fn set(&mut self, status: u16, content: impl Into<Arc<[u8]>>) {
        match self.pages.binary_search_by_key(&status, |page| page.0) {
            Ok(at) => self.pages[at].1 = content.into(),
            Err(at) => self.pages.insert(at, (status, content.into())),
        }
    }

    /// Whether a status has the page that it has without `errorfile`.
    pub fn is_default(&self, status: u16) -> bool {
        let own = wire::http::error_pages::page(status);
        own.is_some_and(|own| own.message() == self.page(status))
    }

    /// The whole answer for a status; a status without a page gets the one of 500.
    pub fn page(&self, status: u16) -> &[u8] {
        let find = |status: u16| self.pages.binary_search_by_key(&status, |page| page.0).ok();
        find(status).or_else(|| find(500)).map_or(&[], |at| &self.pages[at].1)
    }
}
