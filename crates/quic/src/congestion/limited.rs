//! A controller of the library with a largest window. Must never let the controller grow beyond it unseen.

use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};

/// Makes controllers of one kind.
pub(super) struct Factory<F> {
    inner: Arc<F>,
    max: u64,
}

impl<F> Factory<F> {
    pub(super) fn new(inner: Arc<F>, max: u64) -> Self {
        Self { inner, max }
    }
}

impl<F: ControllerFactory + Send + Sync> ControllerFactory for Factory<F> {
    fn build(self: Arc<Self>, now: Instant, mtu: u16) -> Box<dyn Controller> {
        Box::new(Limited { inner: Arc::clone(&self.inner).build(now, mtu), max: self.max })
    }
}

struct Limited {
    inner: Box<dyn Controller>,
    max: u64,
}

impl Limited {
    /// Whether the window is the largest: more acknowledgements are then no reason to open it.
    fn is_full(&self) -> bool {
        self.inner.window() >= self.max
    }
}

impl Controller for Limited {
    fn on_sent(&mut self, now: Instant, bytes: u64, last: u64) {
        self.inner.on_sent(now, bytes, last);
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, app_limited: bool, rtt: &RttEstimator) {
        let is_limited = app_limited || self.is_full();
        self.inner.on_ack(now, sent, bytes, is_limited, rtt);
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, largest: Option<u64>) {
        let is_limited = app_limited || self.is_full();
        self.inner.on_end_acks(now, in_flight, is_limited, largest);
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, is_persistent: bool, lost: u64) {
        self.inner.on_congestion_event(now, sent, is_persistent, lost);
    }

    fn on_mtu_update(&mut self, mtu: u16) {
        self.inner.on_mtu_update(mtu);
    }

    fn window(&self) -> u64 {
        self.inner.window().min(self.max)
    }

    fn metrics(&self) -> ControllerMetrics {
        let mut metrics = self.inner.metrics();
        metrics.congestion_window = self.window();
        metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Self { inner: self.inner.clone_box(), max: self.max })
    }

    fn initial_window(&self) -> u64 {
        self.inner.initial_window().min(self.max)
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
