//! The answers that Weir gives itself when it has none from a server, as a proxy has them: the files of `errorfile` and
//! what `http-error` describes. What no proxy has is HAProxy's page. Must never put an answer together.

use crate::rule::{Answer, Reply};
use std::borrow::Cow;
use std::sync::{Arc, LazyLock};
use wire::http::error_pages::PAGES;

/// A page.
#[derive(Debug, Clone, PartialEq)]
pub enum Page {
    /// A whole answer, sent as it is. Empty: nothing is sent, the connection is only closed.
    Text(Arc<Reply<'static>>),
    /// An answer that is put together for each request.
    Described(Arc<Answer>),
}

/// The pages that a proxy has of its own.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ErrorPages {
    /// By status, ascending.
    pages: Vec<(u16, Page)>,
}

/// HAProxy's: each at the place of its status.
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
    /// No pages at all.
    pub const fn new() -> Self {
        Self { pages: Vec::new() }
    }

    /// Sets one page.
    pub fn set(&mut self, status: u16, page: Page) {
        match self.pages.binary_search_by_key(&status, |page| page.0) {
            Ok(at) => self.pages[at].1 = page,
            Err(at) => self.pages.insert(at, (status, page)),
        }
    }

    /// The proxy's own page for a status; a status that no proxy can have a page for gets the one of 500.
    pub fn own(&self, status: u16) -> Option<&Page> {
        if self.pages.is_empty() {
            return None;
        }
        let status = if wire::http::error_pages::page(status).is_some() { status } else { 500 };
        self.pages.binary_search_by_key(&status, |page| page.0).ok().map(|at| &self.pages[at].1)
    }

    /// The page for what is no request, or is none yet: a whole answer, that of a file if there is one.
    pub fn page(&self, status: u16) -> &[u8] {
        match self.own(status) {
            Some(Page::Text(page)) => &page.text,
            _ => &Self::standard(status).text,
        }
    }

    /// HAProxy's page for a status; a status without one gets that of 500.
    pub fn standard(status: u16) -> &'static Reply<'static> {
        static NONE: Reply<'static> = Reply { text: Cow::Borrowed(b""), head: None };
        let find = |status: u16| STANDARD.get(usize::from(status)).and_then(Option::as_ref);
        find(status).or_else(|| find(500)).unwrap_or(&NONE)
    }
}
