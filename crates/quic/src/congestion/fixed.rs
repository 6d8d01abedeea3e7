//! A window that never changes (`quic-cc-algo nocc`): for tests of everything else.

use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

use quinn_proto::congestion::{Controller, ControllerFactory};

/// Makes controllers with a window of this number of bytes.
pub(super) struct Factory(pub(super) u64);

impl ControllerFactory for Factory {
    fn build(self: Arc<Self>, _: Instant, _: u16) -> Box<dyn Controller> {
        Box::new(Fixed(self.0))
    }
}

#[derive(Clone)]
struct Fixed(u64);

impl Controller for Fixed {
    fn on_congestion_event(&mut self, _: Instant, _: Instant, _: bool, _: u64) {}

    fn on_mtu_update(&mut self, _: u16) {}

    fn window(&self) -> u64 {
        self.0
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        self.0
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_changes_the_window() {
        let now = Instant::now();
        let mut controller = Arc::new(Factory(99_000)).build(now, 1_200);
        controller.on_congestion_event(now, now, true, 50_000);
        controller.on_mtu_update(1_400);
        assert_eq!(
            (controller.window(), controller.clone_box().window(), controller.initial_window()),
            (99_000, 99_000, 99_000)
        );
    }
}
