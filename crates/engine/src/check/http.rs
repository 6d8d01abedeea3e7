//! The HTTP of a check: the request as its rules define it, and the expected response (configuration manual, "http-check send",
//! "http-check expect"). Must never open or close a connection.

use live::health::{CheckStatus, Operation};
use live::{Admin, Checker};
use policy::check::{Expect, Finding, Request};
use policy::program::{ServerAddress, ServerPort};
use wire::h1::{self, ChunkDecoder, HeadLimits, Parse, RequestContext, Scan};
use wire::http::{Fields, Framing, Head};

use super::messages;
use super::running::{Outcome, RunningCheck, Waited};

/// Initial capacity for a request, in bytes.
const USUAL: usize = 256;

impl<'a> RunningCheck<'a> {
    pub(super) async fn send_request(&mut self, request: &'a Request) -> Result<(), Outcome> {
        let bytes = self.request(request);
        self.answer.head = None;
        self.answer.asked_head = *request.method == *b"HEAD";
        if let Some(solo) = self.connection.solo.take() {
            return self.ask(solo, &bytes, request.comment.as_deref()).await;
        }
        if let Some(application) = self.connection.application.take() {
            return self.ask_fcgi(application, &bytes, request.comment.as_deref()).await;
        }
        self.write(&bytes, request.comment.as_deref()).await?;
        self.note_request(request, &bytes);
        Ok(())
    }

    fn request(&self, request: &Request) -> Vec<u8> {
        let state = self.check.send_state.then(|| self.state());
        self.lend(&[], |context| {
            let body = request.body.as_ref().map(|body| body.render(context));
            let mut fields: Vec<(&[u8], Vec<u8>)> = Vec::new();
            for (name, format) in &request.fields {
                let mut value = Vec::new();
                format.render_in(context, &mut value);
                fields.push((name, value));
            }
            if let Some(state) = state {
                fields.push((b"x-haproxy-server-state", state.into_bytes()));
            }
            let mut target = request.target.render(context);
            if let Some((_, host)) = fields.iter().find(|(name, _)| name.eq_ignore_ascii_case(b"host")) {
                target = with_authority(target, host);
            }
            // Neither may contain bytes that would end the line.
            target.retain(|byte| *byte > b' ' && *byte != 0x7f);
            if target.is_empty() {
                // As HAProxy does for a format with an empty result.
                target.push(b'/');
            }
            let mut out = Vec::with_capacity(USUAL);
            out.extend_from_slice(&request.method);
            out.push(b' ');
            out.extend_from_slice(&target);
            out.push(b' ');
            out.extend_from_slice(&request.version);
            out.extend_from_slice(b"\r\n");
            let mut line = |name: &[u8], value: &[u8]| {
                out.extend_from_slice(name);
                out.extend_from_slice(b": ");
                out.extend(value.iter().filter(|byte| !matches!(byte, b'\r' | b'\n' | 0)));
                out.extend_from_slice(b"\r\n");
            };
            let says_connection = fields.iter().any(|(name, _)| name.eq_ignore_ascii_case(b"connection"));
            // Redundant: connections of HTTP/1.1 are persistent by default.
            let stays = |name: &[u8], value: &[u8]| {
                *request.version == *b"HTTP/1.1"
                    && name.eq_ignore_ascii_case(b"connection")
                    && value.eq_ignore_ascii_case(b"keep-alive")
            };
            fields.iter().filter(|(name, value)| !stays(name, value)).for_each(|(name, value)| line(name, value));
            if body.is_some() || !has_no_body(&request.method) {
                line(b"content-length", body.as_ref().map_or(0, Vec::len).to_string().as_bytes());
            }
            if !says_connection && *request.version == *b"HTTP/1.1" {
                line(b"connection", b"close");
            }
            out.extend_from_slice(b"\r\n");
            out.extend_from_slice(&body.unwrap_or_default());
            out
        })
    }

    /// Returns the value of `X-Haproxy-Server-State`.
    fn state(&self) -> String {
        let shared = &self.worker.process;
        let live = &shared.live.proxies[self.proxy.index];
        let Some(status) = live.status(self.server.index) else { return String::new() };
        let health = live.health(self.server.index, Checker::Health);
        let word = match status.operation() {
            _ if status.admin == Admin::Maintenance => "MAINT",
            Operation::Up => "UP",
            Operation::Stopping => "NOLB",
            Operation::Down => "DOWN",
        };
        let serves = status.operation() != Operation::Down;
        let state = health.map_or_else(|| word.to_owned(), |health| health.standing(word, serves));
        let (address, port) = match &*shared.outgoing.address(self.server) {
            ServerAddress::Inet { ip, port: ServerPort::Exact(port) } => (ip.to_string(), port.to_string()),
            ServerAddress::Inet { ip, .. } => (ip.to_string(), "0".to_owned()),
            _ => ("unix".to_owned(), "unix".to_owned()),
        };
        let statuses = || self.proxy.servers().filter_map(|server| live.status(server.index));
        let usable = statuses().filter(|status| status.takes_part);
        let total: u32 = usable.map(|status| status.effective_weight).sum();
        let connections: u32 = statuses().map(|status| status.load.served).sum();
        format!(
            "{state}; address={address}; port={port}; name={}/{}; node={}; weight={}/{total}; scur={}/{connections}; \
             qcur={}",
            self.proxy.name,
            self.server.name,
            self.generation.program.global.node.as_deref().unwrap_or_else(|| self.worker.logger.hostname()),
            status.effective_weight,
            status.load.served,
            status.load.queued,
        )
    }

    /// Whether a 404 from a server that serves puts it into the NOLB state, regardless of other expectations (`http-check
    /// disable-on-404`).
    pub(super) fn wants_no_more(&self, head: &Head) -> bool {
        let serves = || {
            let live = &self.worker.process.live.proxies[self.proxy.index];
            live.status(self.server.index).is_some_and(|status| status.up)
        };
        self.check.disable_on_404 && head.status() == 404 && serves()
    }

    /// Waits for a response that fulfils an `http-check expect`.
    pub(super) async fn expect_answer(&mut self, expect: &'a Expect) -> Result<(), Outcome> {
        self.restart_timeout();
        if self.answer.head.is_none() {
            self.answer.head = Some(self.read_head(expect).await?);
        }
        let Some(head) = &self.answer.head else { return Ok(()) };
        if self.wants_no_more(head) {
            return Ok(());
        }
        match self.lend(&[], |context| expect.judge_head(head, context)) {
            Some(true) => return Ok(()),
            Some(false) => {
                let reason = messages::printable(head.reason());
                return Err(self.refuse(expect, messages::with_comment(self, expect, reason)));
            }
            None => {}
        }
        self.expect_body(expect).await
    }

    /// Returns the limits of response heads.
    pub(super) fn head_limits(&self) -> HeadLimits {
        let global = &self.generation.program.global;
        HeadLimits {
            max_fields: global.maxhdr,
            max_head: global.bufsize,
            accept_unsafe: self.proxy.http.accept_unsafe_response,
            ..HeadLimits::default()
        }
    }

    /// Reads the head of a final response; interim ones are skipped.
    pub(super) async fn read_head(&mut self, expect: &Expect) -> Result<Head, Outcome> {
        if let Some(solo) = self.connection.solo.take() {
            return self.read_head_from(solo, expect).await;
        }
        let global = &self.generation.program.global;
        let limits = self.head_limits();
        let mut scan = Scan::default();
        let mut head = Head::default();
        loop {
            if !self.connection.input.is_empty() {
                let context = RequestContext { head: self.answer.asked_head, ..RequestContext::default() };
                match h1::parse_response(self.connection.input.data(), &limits, &context, &mut scan, &mut head) {
                    Ok(Parse::Complete { consumed }) => {
                        self.connection.input.consume(consumed);
                        if !self.settle_head(&mut head) {
                            return Err(Outcome::new(CheckStatus::SocketError, String::new()));
                        }
                        // 101 is a final response: nothing after it is HTTP.
                        if head.status() == 101 || !(100..200).contains(&head.status()) {
                            return Ok(head);
                        }
                        (scan, head) = (Scan::default(), Head::default());
                        continue;
                    }
                    Ok(Parse::Partial) if self.connection.input.len() < global.bufsize => {}
                    Ok(Parse::Partial) | Err(_) => return Err(Outcome::new(CheckStatus::SocketError, String::new())),
                }
            }
            if self.connection.ended {
                return Err(Outcome::new(CheckStatus::SocketError, String::new()));
            }
            match self.receive().await {
                Waited::Done(Ok(())) => {}
                Waited::Done(Err(error)) => {
                    return Err(Outcome::new(CheckStatus::SocketError, messages::of_system(&error)));
                }
                Waited::Expired => return Err(Outcome::new(expect.timeout, messages::at_expect(self, expect))),
            }
        }
    }

    /// Matches a response's body, up to the size of a buffer.
    async fn expect_body(&mut self, expect: &'a Expect) -> Result<(), Outcome> {
        let most = self.generation.program.global.bufsize;
        let mut framing = self.answer.head.as_ref().map_or(Framing::None, |head| head.framing);
        let mut body = Vec::new();
        let mut decoder = ChunkDecoder::new();
        let first = self.connection.pooling.body.replace(false).is_none();
        loop {
            let mut complete = take_body(self, &mut framing, &mut decoder, &mut body)?;
            self.connection.pooling.body = Some(complete && first);
            body.truncate(most);
            complete |= self.connection.ended || body.len() >= most;
            if body.is_empty() && complete {
                let text = "HTTP content check could not find a response body";
                return Err(self.refuse(expect, messages::with_comment(self, expect, text.to_owned())));
            }
            if !body.is_empty() || complete {
                match self.lend(&body, |context| expect.look(&body, complete, context)) {
                    Finding::Fulfilled => return Ok(()),
                    Finding::Failed => {
                        let text = match expect.negated {
                            true => "HTTP check matched unwanted content",
                            false => "HTTP content check did not match",
                        };
                        return Err(self.refuse(expect, messages::with_comment(self, expect, text.to_owned())));
                    }
                    Finding::Wait if complete => {
                        let text = "HTTP content check did not match".to_owned();
                        return Err(self.refuse(expect, messages::with_comment(self, expect, text)));
                    }
                    Finding::Wait => {}
                }
            }
            match self.receive().await {
                Waited::Done(Ok(())) => {}
                Waited::Done(Err(error)) => {
                    return Err(Outcome::new(CheckStatus::SocketError, messages::of_system(&error)));
                }
                Waited::Expired => return Err(Outcome::new(expect.timeout, messages::at_expect(self, expect))),
            }
        }
    }
}

/// Moves body bytes from the input. Returns true if the body is complete.
fn take_body(
    running: &mut RunningCheck<'_>,
    framing: &mut Framing,
    decoder: &mut ChunkDecoder,
    body: &mut Vec<u8>,
) -> Result<bool, Outcome> {
    let input = &mut running.connection.input;
    match framing {
        Framing::None => Ok(true),
        Framing::UntilClose => {
            body.extend_from_slice(input.data());
            input.clear();
            Ok(false)
        }
        Framing::Length(left) => {
            let here = input.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
            body.extend_from_slice(&input.data()[..here]);
            input.consume(here);
            *left -= here as u64;
            Ok(*left == 0)
        }
        Framing::Chunked => {
            let mut trailers = Fields::new();
            match decoder.decode_in_place(input.data_mut(), &mut trailers) {
                Ok(decoded) => {
                    body.extend_from_slice(&input.data()[..decoded.payload]);
                    input.consume(decoded.consumed);
                    Ok(decoded.state == h1::ChunkState::End)
                }
                Err(_) => Err(Outcome::new(CheckStatus::L7Response, String::new())),
            }
        }
    }
}

/// Methods whose requests have no Content-Length if the check has no body; others get `Content-Length: 0`.
fn has_no_body(method: &[u8]) -> bool {
    matches!(method, b"GET" | b"HEAD" | b"OPTIONS" | b"DELETE")
}

/// Replaces the authority of an absolute target by the Host field.
fn with_authority(target: Vec<u8>, host: &[u8]) -> Vec<u8> {
    let Some(scheme) = target.windows(3).position(|three| three == b"://") else { return target };
    if target.first() == Some(&b'/') {
        return target;
    }
    let (scheme, rest) = target.split_at(scheme + 3);
    let path = rest.iter().position(|byte| matches!(byte, b'/' | b'?')).unwrap_or(rest.len());
    [scheme, host, &rest[path..]].concat()
}

#[cfg(test)]
mod tests {
    use super::with_authority;

    #[test]
    fn absolute_targets_follow_the_host_field() {
        let rows = [
            ("http://abc/x", "http://foo/x"),
            ("http://abc", "http://foo"),
            ("http://abc?q", "http://foo?q"),
            ("/x?u=http://abc/", "/x?u=http://abc/"),
            ("*", "*"),
        ];
        for (target, expected) in rows {
            assert_eq!(with_authority(target.into(), b"foo"), expected.as_bytes(), "{target}");
        }
    }
}
