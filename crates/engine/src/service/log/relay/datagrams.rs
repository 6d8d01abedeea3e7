//! Log messages received as datagrams. Must never wait for anything but the next one.

use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use base::buffer::Buffer;
use rt::net::Datagram;

use crate::worker::Worker;

/// Delay after an error of the socket.
const PAUSE: Duration = Duration::from_millis(100);

/// Receives datagrams until the process stops. Messages longer than a buffer (`tune.bufsize`) are truncated.
pub async fn receive(worker: Rc<Worker>, relay: usize, mut socket: Datagram) {
    let mut buffer = Buffer::with_capacity(rt::buffer_size());
    loop {
        let received = std::future::poll_fn(|cx| {
            if worker.process.is_stopping() {
                return Poll::Ready(None);
            }
            socket.poll_receive_from(cx, &mut buffer).map(Some)
        });
        match received.await {
            None => return,
            Some(Ok((_, address))) => {
                worker.logger.relay(relay, buffer.data(), super::source(&address));
                buffer.clear();
            }
            Some(Err(_)) => rt::sleep(PAUSE).await,
        }
    }
}
