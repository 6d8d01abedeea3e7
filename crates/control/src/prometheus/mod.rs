//! The metrics of the process in the text format of Prometheus (`http-request use-service prometheus-exporter`): a
//! service that writes its answer as the client reads it. Must never buffer more than a few lines of it, and the labels
//! of servers.

mod bgp;
mod datagrams;
mod decisions;
mod metric;
mod otlp;
mod output;
mod sample;
mod selection;
mod stores;
mod text;

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use base::Buffer;
use conn::service::{Failed, Service, respond};
use engine::generation::Generation;
use engine::session::Session;
use engine::worker::Worker;
use wire::http::{Head, error_pages};

use crate::output_queue::Unsent;
use crate::statistics::process::look;
pub(crate) use otlp::send as send_metrics;
use output::{KeptLabels, Output, ScrapePosition};
use selection::Selection;

/// The name in configurations, and the name in logs.
pub(crate) const NAME: &str = "prometheus-exporter";
pub(crate) const SHOWN: &str = "<PROMEX>";

/// By worker: number of tasks, and bytes of buffers.
type WorkerFigures = Vec<(u64, u64)>;

/// Initial capacity of a piece in bytes.
const USUAL: usize = 12 * 1024;

/// Creates the service for one request.
pub(crate) fn start(session: &Session) -> Box<dyn Service> {
    Box::new(Exporter {
        worker: Rc::clone(&session.worker),
        generation: session.shared_generation(),
        selection: Selection::default(),
        work: Work::Asked,
        here: Vec::new(),
        labels: KeptLabels::default(),
        unsent: Unsent::default(),
    })
}

/// The progress of an answer.
enum Work {
    /// The request has not been read.
    Asked,
    /// Collecting values of other workers.
    Gathering(Pin<Box<dyn Future<Output = WorkerFigures>>>),
    /// Writing; the next position.
    Writing(ScrapePosition),
    /// Complete.
    Written,
}

struct Exporter {
    worker: Rc<Worker>,
    generation: Arc<Generation>,
    selection: Selection,
    work: Work,
    /// By worker: number of tasks, and bytes of buffers.
    here: WorkerFigures,
    labels: KeptLabels,
    /// Written bytes that were not read yet.
    unsent: Unsent,
}

impl Service for Exporter {
    fn poll_head(&mut self, cx: &mut Context<'_>, request: &Head, answer: &mut Head) -> Poll<Result<(), Failed>> {
        if let Work::Asked = self.work {
            let Some(selection) = Selection::read(request.target()) else {
                self.refuse(answer);
                return Poll::Ready(Ok(()));
            };
            self.selection = selection;
            let process = Arc::clone(&self.worker.process);
            self.work = Work::Gathering(Box::pin(async move { engine::on_every_worker(&process, look).await }));
        }
        if let Work::Gathering(gathering) = &mut self.work {
            self.here = std::task::ready!(gathering.as_mut().poll(cx));
            respond(answer, 200, b"OK", None);
            answer.append(b"cache-control", b"no-cache");
            answer.append(b"content-type", b"text/plain; version=0.0.4");
            self.work = Work::Writing(ScrapePosition::default());
        }
        Poll::Ready(Ok(()))
    }

    fn poll_data(&mut self, cx: &mut Context<'_>, out: &mut Buffer) -> Poll<Result<usize, Failed>> {
        while let Work::Writing(place) = self.work
            && !self.unsent.fills(out)
        {
            self.write(place);
            // A piece takes most of a time slice. Other requests run between the pieces.
            rt::measure();
            if rt::has_used_slice() {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
        Poll::Ready(self.unsent.take(out))
    }
}

impl Exporter {
    /// Rejects a request with invalid parameters.
    fn refuse(&mut self, answer: &mut Head) {
        let page = error_pages::page(400);
        self.unsent.push(&page.map(|page| page.body()).unwrap_or_default());
        let reason = page.map_or("Bad request", |page| page.reason);
        respond(answer, 400, reason.as_bytes(), Some(self.unsent.len() as u64));
        answer.append(b"cache-control", b"no-cache");
        answer.append(b"content-type", b"text/html");
        self.work = Work::Written;
    }

    /// Writes the next piece.
    fn write(&mut self, place: ScrapePosition) {
        let output =
            Output { worker: &self.worker, generation: &self.generation, selection: &self.selection, here: &self.here };
        let mut text = String::with_capacity(USUAL);
        self.work = output.write(place, &mut self.labels, &mut text).map_or(Work::Written, Work::Writing);
        self.unsent.push(&config::text::to_bytes(&text));
    }
}
