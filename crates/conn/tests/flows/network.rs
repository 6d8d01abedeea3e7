//! Transfers between two connections of the simulated network, through kernel pipes if a case asks for them. Owns the
//! connections; must never know how a flow moves bytes.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use rt::net::{Address, BindOptions, ConnectOptions, Listener, ListeningSocket, Stream};
use testkit::{Peer, both};
use weir_conn::flow::{Flow, FlowError, FlowProgress, FlowStep, body_buffer};
use weir_conn::transport::Transport;

use crate::model::{Case, Coding, End, Outcome, judge};

/// Returns the two ends of one connection.
async fn pair(service: &str) -> (Stream, Stream) {
    let address = Address::Inet(service.parse().expect("an address"));
    let socket = Arc::new(ListeningSocket::bind(&address, &BindOptions::default()).expect("it is free"));
    let mut listener = Listener::new(Arc::clone(&socket)).expect("it listens");
    let client = Stream::connect(&address, &ConnectOptions::default()).expect("it begins").await.expect("it connects");
    let (server, _) = listener.accept().await.expect("it is accepted");
    (client, Stream::adopt(server))
}

/// The outcome on the flow's side.
struct FlowOutcome {
    result: Result<(), &'static str>,
    rest: Vec<u8>,
    consumed: usize,
}

pub async fn run(case: Case) {
    let sent = case.sent();
    let (sender, source) = pair("10.0.0.1:1").await;
    let (sink, receiver) = pair("10.0.0.1:2").await;
    let (mut sender, mut receiver) = (Peer::over(sender), Peer::over(receiver));
    let arrived = match case.end {
        End::SourceCloses(at) | End::SourceFails(at) => at.min(sent.bytes.len()),
        _ => sent.bytes.len(),
    };
    let early = case.early.min(arrived).min(body_buffer().room());
    let bytes = sent.bytes[early..arrived].to_vec();
    let closes = case.coding == Coding::UntilClose || matches!(case.end, End::SourceCloses(_));
    let sends = async {
        sender.try_send(&bytes).await;
        match case.end {
            End::SourceFails(_) => return sender.reset(),
            _ if closes => sender.try_half_close(),
            _ => {}
        }
        // It stays open until the flow has ended.
        sender.try_receive(1).await;
    };
    let receives = async {
        if let End::SinkFails(at) = case.end {
            let received = receiver.try_receive_up_to(at).await.0;
            receiver.reset();
            return received;
        }
        receiver.try_receive_up_to(usize::MAX / 2).await.0
    };
    let flows = flow(&case, early, (Transport::Plain(source), Transport::Plain(sink)));
    let (_, (got, seen)) = both(sends, both(receives, flows)).await;
    let FlowOutcome { result, rest, consumed } = seen;
    if matches!(case.end, End::SinkFails(_)) && result.is_ok() {
        // All of it was sent before.
        return;
    }
    judge(&case, &Outcome { result, got, rest, consumed }, 0, false);
}

async fn flow(case: &Case, early: usize, (mut source, mut sink): (Transport, Transport)) -> FlowOutcome {
    let sent = case.sent();
    let (mut flow, mut moved) = (Flow::idle(), FlowProgress::default());
    if let Some(filter) = case.filter() {
        flow.set_body_filter(filter);
    }
    let mut input = body_buffer();
    assert!(input.push(&sent.bytes[..early]));
    if case.head > 0 {
        assert!(flow.head_mut().push(&case.head_text(0)));
    }
    let mut result = flow.start(input, sent.framing, case.chunked).map(|_| ());
    // In either order, recorded bytes are copied.
    let record_first = case.seed.is_multiple_of(2);
    if case.recorded && record_first {
        flow.record();
    }
    if case.spliced {
        flow.splice();
    }
    if case.recorded && !record_first {
        flow.record();
    }
    flow.closes = case.closes;
    if result.is_ok() {
        result = drive(&mut flow, &mut source, &mut sink, &mut moved).await;
        assert_eq!(result.is_ok(), flow.is_finished());
    }
    let may_splice = case.spliced && !case.recorded && !flow.has_passage();
    assert!(moved.spliced == 0 || may_splice, "what is recorded or filtered is copied");
    let result = result.map_err(|error| match error {
        FlowError::Read(_) => "read",
        FlowError::Truncated => "truncated",
        FlowError::Write(_) => "write",
        FlowError::Malformed(_) => "malformed",
        FlowError::Refused => "refused",
    });
    let rest = if result.is_ok() { flow.take_rest().data().to_vec() } else { Vec::new() };
    let consumed =
        early.max(sent.body.min(early + moved.read)) + rest.len() - early.saturating_sub(sent.body).min(rest.len());
    FlowOutcome { result, rest, consumed }
}

async fn drive(
    flow: &mut Flow,
    source: &mut Transport,
    sink: &mut Transport,
    moved: &mut FlowProgress,
) -> Result<(), FlowError> {
    poll_fn(|context| {
        loop {
            match flow.poll(context, source, sink, moved) {
                Ok(FlowStep::Finished) => return Poll::Ready(Ok(())),
                Ok(FlowStep::Exhausted | FlowStep::Held) => {}
                Ok(FlowStep::AwaitsSource | FlowStep::AwaitsSink) => return Poll::Pending,
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    })
    .await
}
