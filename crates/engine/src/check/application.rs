//! Checks of FastCGI applications (configuration manual, "check-proto"): sending the request of a check and receiving its
//! response. Must never judge a response.

use std::io;

use base::buffer::Buffer;
use conn::fcgi::{Connection, Options};
use conn::flow::ByteSource as _;
use conn::upstream::Upstream;
use live::health::CheckStatus;
use policy::check::Connect;
use policy::program::MuxProtocol;
use wire::h1::{self, Parse, Scan};
use wire::http::{Framing, Head, Method};

use super::messages;
use super::running::{Outcome, RunningCheck, Waited};
use crate::fcgi_request;

impl RunningCheck<'_> {
    /// Whether a connection has to speak FastCGI.
    pub(super) fn asks_application(&self, connect: &Connect) -> bool {
        self.check.is_http && self.protocol(connect) == Some(MuxProtocol::Fcgi)
    }

    /// Switches an established connection to FastCGI if it is the protocol of the check.
    pub(super) fn choose_fcgi(&mut self, connect: &Connect) {
        if self.asks_application(connect) {
            // Such a connection cannot be pooled.
            self.keep_alone();
            self.connection.spare = None;
            self.connection.application =
                self.connection.stream.take().map(|stream| Box::new(Connection::new(stream, Options::default())));
        }
    }

    /// Sends a request that is given as text of HTTP/1.
    pub(super) async fn ask_fcgi(
        &mut self,
        mut application: Box<Connection>,
        text: &[u8],
        comment: Option<&str>,
    ) -> Result<(), Outcome> {
        self.connection.input.clear();
        self.connection.ended = false;
        let (mut head, mut out) = (Head::new(), rt::buffer());
        let app = self.proxy.backend.as_ref().and_then(|backend| backend.fcgi.as_ref());
        let parsed = h1::parse_request(text, &self.head_limits(), &mut Scan::default(), &mut head);
        let is_written = match (parsed, app) {
            (Ok(Parse::Complete { consumed }), Some(app)) => {
                fcgi_request::write_check(&head, app, text.get(consumed..).unwrap_or_default(), &mut out).is_ok()
            }
            _ => false,
        };
        if !is_written {
            return Err(Outcome::new(CheckStatus::SocketError, messages::at_send(self, comment)));
        }
        let sent = self.within(|cx| Upstream::Fcgi(&mut application).poll_send(cx, &mut out)).await;
        self.connection.application = Some(application);
        self.note_sent(sent, text.len(), comment)
    }

    /// Converts a CGI/1.1 response head to one of HTTP. Returns false if it is not valid.
    pub(super) fn settle_head(&self, head: &mut Head) -> bool {
        if self.connection.application.is_none() {
            return true;
        }
        let method = if self.answer.asked_head { Method::Head } else { Method::Get };
        let fits = wire::fcgi::apply_cgi_fields(head, method);
        // The payload is delivered unframed, up to its end.
        if head.framing == Framing::Chunked {
            head.framing = Framing::UntilClose;
        }
        fits
    }

    /// Receives more bytes of a response.
    pub(super) async fn receive_from_fcgi(&mut self, mut application: Box<Connection>) -> Waited<io::Result<()>> {
        let mut input = std::mem::replace(&mut self.connection.input, Buffer::empty());
        if input.capacity() == 0 {
            input = rt::buffer();
        }
        let read = self.within(|cx| application.poll_read(cx, &mut input)).await;
        (self.connection.input, self.connection.application) = (input, Some(application));
        self.note_received(read)
    }
}
