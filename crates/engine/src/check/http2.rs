//! Checks over HTTP/2 and HTTP/3 (configuration manual, "check-proto", "http-check connect proto"): choosing the protocol, sending the
//! request and receiving the response. Must never judge a response.

use std::io;

use base::buffer::Buffer;
use conn::exchange::AnswerHeadKind;
use conn::h2::Terms;
use conn::multiplexed::{Protocol, ServerConnection, ServerTerms};
use conn::sequential_client::Solo;
use live::health::CheckStatus;
use policy::check::{Connect, Expect};
use policy::program::MuxProtocol;
use wire::h1::{self, Parse, Scan};
use wire::http::{Framing, Head, Method};

use super::messages;
use super::running::{Outcome, RunningCheck, Waited};
use crate::outgoing_quic;

impl RunningCheck<'_> {
    /// Returns the configured protocol of a connection; `None`: the result of ALPN.
    pub(super) fn protocol(&self, connect: &Connect) -> Option<MuxProtocol> {
        match connect.protocol {
            None if connect.default => self.own.protocol,
            written => written,
        }
    }

    /// Switches an established connection to HTTP/2 or QMux if that is the protocol of the check.
    pub(super) async fn choose_protocol(&mut self, connect: &Connect) -> Result<(), Outcome> {
        let protocol = match self.protocol(connect) {
            Some(MuxProtocol::Http2) => Some(Protocol::H2),
            Some(MuxProtocol::Qmux) => Some(Protocol::Qmux),
            Some(_) => None,
            None => {
                let state = self.connection.stream.as_ref().and_then(|stream| stream.handshake_info());
                state.and_then(|state| state.alpn.as_deref()).and_then(Protocol::named)
            }
        };
        let Some(protocol) = protocol.filter(|_| self.check.is_http) else { return Ok(()) };
        let global = &self.generation.program.global;
        let terms = match protocol {
            Protocol::Qmux => {
                let settings = outgoing_quic::qmux_settings(&global.quic.servers);
                ServerTerms::Qmux(outgoing_quic::http3_terms(global, self.server), settings)
            }
            _ => ServerTerms::H2(Terms { extends: false, max_head: global.bufsize, ..Terms::default() }),
        };
        // The pool is for connections of HTTP/1.
        self.keep_alone();
        self.connection.spare = None;
        let Some(stream) = self.connection.stream.take() else { return Ok(()) };
        let (mut connection, requests) = ServerConnection::new(stream, terms);
        match self.within(|cx| connection.poll_ready(cx, &requests)).await {
            Waited::Done(true) => {}
            Waited::Done(false) => {
                let reason = "the connection ended before its parameters";
                return Err(Outcome::new(CheckStatus::L6Response, messages::at_connect(self, connect, reason)));
            }
            Waited::Expired => {
                return Err(Outcome::new(CheckStatus::L6Timeout, messages::at_connect(self, connect, "")));
            }
        }
        self.connection.solo = Some(Box::new(Solo::new(connection, requests)));
        Ok(())
    }

    /// Sends a request that is given as text of HTTP/1.
    pub(super) async fn ask(&mut self, mut solo: Box<Solo>, text: &[u8], comment: Option<&str>) -> Result<(), Outcome> {
        self.connection.input.clear();
        self.connection.ended = false;
        let mut head = Head::new();
        let parsed = h1::parse_request(text, &self.head_limits(), &mut Scan::default(), &mut head);
        let begun = match parsed {
            Ok(Parse::Complete { consumed }) => solo.ask(&head, text.get(consumed..).unwrap_or_default()),
            _ => Err(h1::Overflow),
        };
        if begun != Ok(true) {
            return Err(Outcome::new(CheckStatus::SocketError, messages::at_send(self, comment)));
        }
        let sent = self.within(|cx| solo.poll_send(cx)).await;
        self.connection.solo = Some(solo);
        self.note_sent(sent, text.len(), comment)
    }

    /// Reads the head of a final response; interim ones are skipped.
    pub(super) async fn read_head_from(&mut self, mut solo: Box<Solo>, expect: &Expect) -> Result<Head, Outcome> {
        let limits = self.head_limits();
        let method = if self.answer.asked_head { Method::Head } else { Method::Get };
        loop {
            let mut head = Head::new();
            match self.within(|cx| solo.poll_head(cx, method, &limits, &mut head)).await {
                Waited::Done(AnswerHeadKind::Interim) => {}
                Waited::Done(AnswerHeadKind::Final) => {
                    self.connection.solo = Some(solo);
                    // The payload is delivered unframed, up to the end of its stream.
                    if head.framing != Framing::None {
                        head.framing = Framing::UntilClose;
                    }
                    return Ok(head);
                }
                Waited::Done(AnswerHeadKind::Part | AnswerHeadKind::Invalid(_)) => {
                    return Err(Outcome::new(CheckStatus::SocketError, String::new()));
                }
                Waited::Expired => return Err(Outcome::new(expect.timeout, messages::at_expect(self, expect))),
            }
        }
    }

    /// Receives payload.
    pub(super) async fn receive_from(&mut self, mut solo: Box<Solo>) -> Waited<io::Result<()>> {
        let mut input = std::mem::replace(&mut self.connection.input, Buffer::empty());
        if input.capacity() == 0 {
            input = rt::buffer();
        }
        let read = self.within(|cx| solo.poll_read(cx, &mut input)).await;
        (self.connection.input, self.connection.solo) = (input, Some(solo));
        self.note_received(read)
    }
}
