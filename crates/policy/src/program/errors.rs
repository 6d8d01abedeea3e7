//! The error pages of a proxy: the files of `errorfile` and the responses of `http-error`. HAProxy's built-in pages are
//! the default. Must never build a response.

use crate::rule::{Answer, Reply};
use std::borrow::Cow;
use std::sync::{Arc, LazyLock};
use wire::http::error_pages::PAGES;

/// An error page.
#[derive(Debug, Clone, PartialEq)]
pub enum Page {
    /// A complete response, sent unchanged. Empty: the connection is closed without a response.
    Text(Arc<Reply<'static>>),
    /// A response that is built for each request.
    Described(Arc<Answer>),
}

/// The error pages that a proxy configures.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ErrorPages {
    /// Pages, sorted by status.
    pages: Vec<(u16, Page)>,
}

/// HAProxy's pages, indexed by status.
static STANDARD: LazyLock<Vec<Option<Reply<'static>>>> = LazyLock::new(|| {
    let mut pages = Vec::new();
    for page in PAGES {
        let place = usize::from(page.status);
        pages.resize(place + 1, None);
        pages[place] = Some(Reply::new(page.message()));
    }
    pages
});

impl ErrorPages {
    /// Creates an empty set of pages.
    pub const fn new() -> Self {
        Self { pages: Vec::new() }
    }

    /// Sets the page of a status.
    pub fn set(&mut self, status: u16, page: Page) {
        match self.pages.binary_search_by_key(&status, |page| page.0) {
            Ok(at) => self.pages[at].1 = page,
            Err(at) => self.pages.insert(at, (status, page)),
        }
    }

    /// Returns the proxy's own page for a status; a status for which no page can be configured uses that of 500.
    pub fn own(&self, status: u16) -> Option<&Page> {
        if self.pages.is_empty() {
            return None;
        }
        let status = if wire::http::error_pages::page(status).is_some() { status } else { 500 };
        self.pages.binary_search_by_key(&status, |page| page.0).ok().map(|at| &self.pages[at].1)
    }

    /// Returns a complete response to bytes that are not a valid request: the proxy's file, if there is one.
    pub fn page(&self, status: u16) -> &[u8] {
        match self.own(status) {
            Some(Page::Text(page)) => &page.text,
            _ => &Self::standard(status).text,
        }
    }

    /// Returns HAProxy's page for a status; a status without one uses that of 500.
    pub fn standard(status: u16) -> &'static Reply<'static> {
        static NONE: Reply<'static> = Reply { text: Cow::Borrowed(b""), head: None };
        let find = |status: u16| STANDARD.get(usize::from(status)).and_then(Option::as_ref);
        find(status).or_else(|| find(500)).unwrap_or(&NONE)
    }
}
