//! The statistics page (configuration manual, "stats uri"): a service that answers in HTML, CSV, JSON or the typed
//! form, and accepts the forms of the page. Must never buffer more than a few rows of an answer, and never change a
//! server without the admin level.

mod cells;
mod form;
mod format;
mod html;
mod query;

pub(crate) use form::{Submission, decode};
pub(crate) use query::is_from_the_page;

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use base::Buffer;
use conn::service::{Failed, Service, respond};
use engine::generation::Generation;
use engine::service::registry::PageRequest;
use engine::session::Session;
use engine::worker::Worker;
use policy::program::{Proxy, StatsPage};
use wire::http::Head;

use crate::field::Form;
use crate::output_queue::Unsent;
use crate::statistics::{self, Object, StatisticsQuery};
use query::{Query, View};

/// Creates the service for one request.
pub(crate) fn start(session: &Session, request: PageRequest) -> Box<dyn Service> {
    Box::new(PageService {
        worker: Rc::clone(&session.worker),
        generation: session.shared_generation(),
        request,
        query: Query::default(),
        wish: StatisticsQuery::all(Form::Plain),
        work: Work::Reading(Submission::default()),
        unsent: Unsent::default(),
    })
}

/// The progress of an answer.
enum Work {
    /// Reading the request's payload; it is used only for a form.
    Reading(Submission),
    /// Applying a form.
    Changing(Pin<Box<dyn Future<Output = &'static str>>>),
    /// Writing; the next position.
    Writing(PagePosition),
    /// Complete.
    Written,
}

/// The next object to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PagePosition {
    /// The part before all proxies.
    Begin,
    /// An object of a proxy, both by index; `first`: no object of the proxy was written yet.
    Object { proxy: usize, object: usize, first: bool },
}

struct PageService {
    worker: Rc<Worker>,
    generation: Arc<Generation>,
    request: PageRequest,
    query: Query,
    wish: StatisticsQuery,
    work: Work,
    /// Written bytes that were not read yet.
    unsent: Unsent,
}

/// Returns the page of a request.
fn page_of(generation: &Generation, request: PageRequest) -> Option<&StatsPage> {
    generation.proxy(request.proxy).stats.as_deref()
}

impl Service for PageService {
    fn poll_head(&mut self, cx: &mut Context<'_>, request: &Head, answer: &mut Head) -> Poll<Result<(), Failed>> {
        let generation = Arc::clone(&self.generation);
        let Some(page) = page_of(&generation, self.request) else { return Poll::Ready(Err(Failed)) };
        let query = Query::read(request.target(), &page.uri);
        if request.method() != b"POST" {
            self.begin(query, answer);
            return Poll::Ready(Ok(()));
        }
        match &mut self.work {
            // Waits for the end of the payload.
            Work::Reading(submission) if !submission.is_whole() => return Poll::Pending,
            Work::Reading(submission) => {
                let submission = std::mem::take(submission);
                let permitted = self.request.admin && query::is_from_the_page(request);
                let process = Arc::clone(&self.worker.process);
                let changing =
                    form::submit(process, Rc::clone(&self.worker), Arc::clone(&generation), self.request, submission);
                self.work = if permitted {
                    Work::Changing(Box::pin(changing))
                } else {
                    Work::Changing(Box::pin(std::future::ready(form::DENIED)))
                };
                return self.poll_head(cx, request, answer);
            }
            Work::Changing(changing) => {
                let Poll::Ready(result) = changing.as_mut().poll(cx) else { return Poll::Pending };
                respond(answer, 303, b"See Other", Some(0));
                answer.append(b"cache-control", b"no-cache");
                answer.append(b"content-type", b"text/plain");
                answer.append(b"location", &query.location(&page.uri, result));
                self.work = Work::Written;
            }
            Work::Writing(_) | Work::Written => {}
        }
        Poll::Ready(Ok(()))
    }

    fn poll_data(&mut self, cx: &mut Context<'_>, out: &mut Buffer) -> Poll<Result<usize, Failed>> {
        while !self.unsent.fills(out) && self.write() {
            // A row takes some ten microseconds: on pages with many servers, other requests run between rows.
            if rt::slice_is_over() {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
        Poll::Ready(self.unsent.take(out))
    }

    fn poll_take(&mut self, _: &mut Context<'_>, payload: &mut Buffer) -> Poll<Result<(), Failed>> {
        if let Work::Reading(submission) = &mut self.work {
            let global = &self.generation.program.global;
            submission.take(payload.data(), global.bufsize.saturating_sub(global.maxrewrite));
        }
        payload.clear();
        Poll::Ready(Ok(()))
    }

    fn end_request(&mut self) {
        if let Work::Reading(submission) = &mut self.work {
            submission.end();
        }
    }
}

impl PageService {
    /// Begins the answer to a request that changes nothing.
    fn begin(&mut self, query: Query, answer: &mut Head) {
        respond(answer, 200, b"OK", None);
        answer.append(b"cache-control", b"no-cache");
        answer.append(b"content-type", query.view.media_type());
        let form = match query.view {
            View::Html | View::Csv => Form::Plain,
            View::Typed => Form::Typed,
            View::Json | View::JsonSchema => Form::Json,
        };
        let page = page_of(&self.generation, self.request);
        let (refresh, legends) = page.map(|page| (page.refresh, page.shows_legends)).unwrap_or_default();
        self.wish = StatisticsQuery { up: query.up, no_maint: query.no_maint, legends, ..StatisticsQuery::all(form) };
        if let (View::Html, Some(seconds), false) = (query.view, refresh, query.norefresh) {
            answer.append(b"refresh", seconds.to_string().as_bytes());
        }
        self.query = query;
        self.work = Work::Writing(PagePosition::Begin);
    }

    /// Writes the next piece. False: the answer is complete.
    fn write(&mut self) -> bool {
        let Work::Writing(place) = self.work else { return false };
        let generation = Arc::clone(&self.generation);
        let Some(page) = page_of(&generation, self.request) else { return false };
        let mut text = String::new();
        let shown = PageInputs {
            worker: &self.worker,
            generation: &generation,
            page,
            query: &self.query,
            wish: &self.wish,
            admin: self.request.admin,
        };
        let next = shown.write(place, &mut text);
        self.work = next.map_or(Work::Written, Work::Writing);
        self.unsent.push(&config::text::to_bytes(&text));
        true
    }
}

/// The inputs of a page.
pub(super) struct PageInputs<'a> {
    worker: &'a Worker,
    generation: &'a Generation,
    page: &'a StatsPage,
    query: &'a Query,
    wish: &'a StatisticsQuery,
    admin: bool,
}

impl PageInputs<'_> {
    /// Writes the object at `place`. Returns the next position.
    fn write(&self, place: PagePosition, out: &mut String) -> Option<PagePosition> {
        let program = &self.generation.program;
        let is_html = self.query.view == View::Html;
        let (proxy, object, first) = match place {
            PagePosition::Begin if self.query.view == View::JsonSchema => {
                query::write_json_schema(out);
                return None;
            }
            PagePosition::Begin => {
                if is_html {
                    html::begin(self, out)
                } else {
                    statistics::begin(out, self.wish.form)
                }
                return Some(PagePosition::Object { proxy: 0, object: 0, first: true });
            }
            PagePosition::Object { proxy, object, first } => (proxy, object, first),
        };
        let Some(found) = program.proxies.get(proxy) else {
            if is_html {
                html::end(out)
            } else {
                statistics::end(out, self.wish.form)
            }
            return None;
        };
        let after = PagePosition::Object { proxy: proxy + 1, object: 0, first };
        if !self.shows(found) {
            return Some(after);
        }
        if object == 0 && is_html {
            html::begin_proxy(self, found, out);
        }
        let Some(kind) = statistics::kinds(found, self.wish.kinds).nth(object) else {
            if is_html {
                html::end_proxy(self, found, out);
            }
            return Some(after);
        };
        let one = Object::new(self.worker, program, found, kind, self.wish.counts_servers());
        let mut is_first = first;
        if self.wish.wants(&one) {
            if is_html {
                html::object(self, &one, out)
            } else {
                statistics::line(out, &one, self.wish, first)
            }
            is_first = false;
        }
        Some(PagePosition::Object { proxy, object: object + 1, first: is_first })
    }

    /// Whether a proxy is on the page: `stats scope` and the filter of the request.
    fn shows(&self, proxy: &Proxy) -> bool {
        let wanted = &*self.query.scope;
        let is_visible = !proxy.disabled && (proxy.frontend.is_some() || proxy.backend.is_some());
        is_visible && self.page.shows(&proxy.name) && (wanted.is_empty() || proxy.name.contains(wanted))
    }
}
