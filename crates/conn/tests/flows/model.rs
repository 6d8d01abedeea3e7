//! The transfer of a body as data: what a source sends, the filter, the end; and what has to arrive. Owns the
//! expectation; must never look at a flow.

use base::buffer::Buffer;
use base::moment::Moment;
use testkit::{Chunked, decode_chunks, encode_chunks, text};
use weir_conn::flow::{BodyFilter, FilterOutput, body_buffer, forward};
use wire::http::Framing;

/// The framing of the source's body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Coding {
    None,
    Length,
    /// Chunks of these sizes, repeated, and the number of trailers.
    Chunked(Vec<usize>, usize),
    UntilClose,
}

/// How a transfer ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Whole,
    /// The source closes its direction after that number of bytes.
    SourceCloses(usize),
    /// The source fails after that number of bytes.
    SourceFails(usize),
    /// The sink fails after that number of bytes.
    SinkFails(usize),
    /// The last chunk is malformed.
    Malformed,
    /// The sink is closed after that number of polls, and the source is read to its end.
    Abandoned(usize),
    /// After the first number of polls, and once more after the second, the recorded bytes are sent to another sink.
    Rewound(usize, usize),
}

/// The filter of the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter {
    Absent,
    Through,
    /// Passes on at most that number of bytes at a time.
    Splits(usize),
    /// Doubles each byte.
    Doubles,
    Drops,
    /// Holds each piece back that number of times.
    Holds(usize),
    /// Appends a suffix to the body.
    Appends,
}

/// The suffix of [`Filter::Appends`].
const SUFFIX: &[u8] = b"<end>";

#[derive(Clone, Debug)]
pub struct Case {
    pub seed: u64,
    pub coding: Coding,
    /// Length of the payload in bytes.
    pub payload: usize,
    /// Length of the next message in bytes.
    pub after: usize,
    /// The number of bytes of both that were read with the head.
    pub early: usize,
    /// Length of the head written first, in bytes.
    pub head: usize,
    /// Whether the sink is framed in chunks.
    pub chunked: bool,
    pub filter: Filter,
    pub recorded: bool,
    pub spliced: bool,
    pub closes: bool,
    pub end: End,
}

/// The bytes that a source sends.
pub struct SentMessage {
    /// All bytes.
    pub bytes: Vec<u8>,
    /// The length of the body, including its framing.
    pub body: usize,
    pub payload: Vec<u8>,
    pub trailers: Vec<(String, String)>,
    pub framing: Framing,
}

impl Case {
    /// Returns the case without contradictions.
    pub fn settled(mut self) -> Self {
        if self.coding == Coding::None {
            // A message without a body has no framing and no filter.
            (self.payload, self.chunked, self.filter) = (0, false, Filter::Absent);
        }
        if self.payload == 0 && self.coding == Coding::Length {
            (self.chunked, self.filter) = (false, Filter::Absent);
        }
        if self.coding == Coding::UntilClose {
            self.after = 0;
        }
        if self.end == End::Malformed && !matches!(self.coding, Coding::Chunked(..)) {
            self.end = End::Whole;
        }
        if matches!(self.end, End::Rewound(..)) {
            self.recorded = true;
        }
        self
    }

    pub fn sent(&self) -> SentMessage {
        let payload = text(self.payload, self.seed);
        let mut trailers = Vec::new();
        let (mut bytes, framing) = match &self.coding {
            Coding::None => (Vec::new(), Framing::None),
            Coding::Length => (payload.clone(), Framing::Length(payload.len() as u64)),
            Coding::UntilClose => (payload.clone(), Framing::UntilClose),
            Coding::Chunked(sizes, count) => {
                trailers = (0..*count).map(|number| (format!("x-{number}"), format!("value {number}"))).collect();
                let mut next = sizes.iter().copied().cycle();
                let mut size = || next.next().expect("it goes on for ever");
                (encode_chunks(&payload, &mut size, &trailers), Framing::Chunked)
            }
        };
        if self.end == End::Malformed {
            let last = last_chunk(&trailers);
            bytes.truncate(bytes.len() - last.len());
            bytes.extend_from_slice(b"zz\r\n");
        }
        let body = bytes.len();
        bytes.extend(text(self.after, self.seed + 1));
        SentMessage { bytes, body, payload, trailers, framing }
    }

    /// The head written first to the sink with that index.
    pub fn head_text(&self, number: u64) -> Vec<u8> {
        text(self.head, self.seed + 2 + number)
    }

    /// The output of the filter for a payload, which is `whole` or the beginning of one.
    pub fn filtered(&self, payload: &[u8], whole: bool) -> Vec<u8> {
        match self.filter {
            Filter::Doubles => payload.iter().flat_map(|byte| [*byte, *byte]).collect(),
            Filter::Drops => Vec::new(),
            Filter::Appends if whole => [payload, SUFFIX].concat(),
            _ => payload.to_vec(),
        }
    }

    pub fn filter(&self) -> Option<Box<dyn BodyFilter>> {
        (self.filter != Filter::Absent).then(|| Box::new(Acts { filter: self.filter, done: 0 }) as Box<dyn BodyFilter>)
    }
}

fn last_chunk(trailers: &[(String, String)]) -> String {
    let lines: String = trailers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    format!("0\r\n{lines}\r\n")
}

/// An active filter.
struct Acts {
    filter: Filter,
    /// How often it has held this piece back; whether it has appended.
    done: usize,
}

impl BodyFilter for Acts {
    fn pass(&mut self, input: &mut Buffer, output: &mut Buffer, ended: bool) -> FilterOutput {
        assert!(output.is_empty(), "the output of a pass is empty");
        match self.filter {
            Filter::Absent | Filter::Through | Filter::Appends => {
                forward(input, output, usize::MAX);
            }
            Filter::Splits(most) => {
                forward(input, output, most);
            }
            Filter::Drops => input.clear(),
            Filter::Holds(times) => {
                if !input.is_empty() && self.done < times {
                    self.done += 1;
                    return FilterOutput::Until(Moment::ZERO);
                }
                self.done = 0;
                forward(input, output, usize::MAX);
            }
            Filter::Doubles => {
                *output = body_buffer();
                let count = input.len().min(output.room() / 2);
                let doubled: Vec<_> = input.data()[..count].iter().flat_map(|byte| [*byte, *byte]).collect();
                assert!(output.push(&doubled));
                input.consume(count);
            }
        }
        if !input.is_empty() {
            return FilterOutput::Again;
        }
        if ended && self.filter == Filter::Appends && self.done == 0 {
            if output.is_empty() {
                *output = body_buffer();
            }
            if !output.push(SUFFIX) {
                return FilterOutput::Again;
            }
            self.done = 1;
        }
        FilterOutput::Through
    }
}

/// The payload that a sink received after its head, and the trailers if it was complete.
pub fn unframed(case: &Case, got: &[u8]) -> (Vec<u8>, Option<Vec<(String, String)>>) {
    if !case.chunked {
        return (got.to_vec(), None);
    }
    let (mut coded, mut into) = (got.to_vec(), Chunked::default());
    if decode_chunks(&mut coded, &mut into) {
        assert!(coded.is_empty(), "{} bytes after the last chunk", coded.len());
        return (into.body, Some(into.trailers));
    }
    // The rest is a part of one chunk or of the end.
    if let Some(line) = coded.windows(2).position(|two| two == b"\r\n") {
        let size = usize::from_str_radix(std::str::from_utf8(&coded[..line]).expect("a size"), 16).expect("a size");
        let data = &coded[line + 2..];
        into.body.extend_from_slice(&data[..data.len().min(size)]);
    }
    (into.body, None)
}

/// The outcome of a transfer.
pub struct Outcome {
    /// `Ok`, or the name of the error.
    pub result: Result<(), &'static str>,
    /// The bytes received by the last sink, including its head.
    pub got: Vec<u8>,
    /// Bytes read after the body.
    pub rest: Vec<u8>,
    /// The number of bytes read from the source.
    pub consumed: usize,
}

/// Judges an outcome. `exact`: the numbers of bytes that a failing sink accepts and that a failing source sends are
/// known exactly.
pub fn judge(case: &Case, outcome: &Outcome, sinks: u64, exact: bool) {
    let sent = case.sent();
    let arrived = match case.end {
        End::SourceCloses(at) | End::SourceFails(at) => at.min(sent.bytes.len()),
        _ => sent.bytes.len(),
    };
    let whole_came = match case.coding {
        Coding::UntilClose => !matches!(case.end, End::SourceFails(_)),
        _ => arrived >= sent.body && case.end != End::Malformed,
    };
    let payload = payload_of(case, &sent, arrived.min(sent.body));
    let head = case.head_text(sinks);
    let expected = case.filtered(&payload, whole_came);
    let (got_head, got) = outcome.got.split_at(outcome.got.len().min(head.len()));
    assert!(head.starts_with(got_head), "the head goes first");
    if let End::Abandoned(_) = case.end {
        let (got, _) = unframed(case, got);
        assert!(expected.starts_with(&got) && outcome.result.is_ok());
        return next_message(case, &sent, outcome);
    }
    let (got, end) = unframed(case, got);
    assert!(expected.starts_with(&got), "{} bytes that are not the payload's first", got.len());
    match outcome.result {
        Ok(()) => {
            assert!(whole_came, "an end was seen where there is none");
            assert_eq!((got_head.len(), got.len()), (head.len(), expected.len()), "of a whole body");
            assert_eq!(end, case.chunked.then(|| sent.trailers.clone()));
            next_message(case, &sent, outcome);
        }
        Err(why) => {
            assert!(end.is_none(), "a body that failed has no end");
            let fits = match case.end {
                End::SourceCloses(_) => why == "truncated",
                End::SourceFails(_) => why == "read",
                End::SinkFails(at) => {
                    assert!(!exact || outcome.got.len() == at, "{} bytes of {at}", outcome.got.len());
                    why == "write"
                }
                End::Malformed => why == "malformed",
                End::Whole | End::Abandoned(_) | End::Rewound(..) => false,
            };
            assert!(fits, "it ended with {why}");
            let at_the_source = matches!(case.end, End::SourceCloses(_) | End::SourceFails(_));
            // A reset may overtake bytes that its sender has not sent yet.
            let lost = !exact && matches!(case.end, End::SourceFails(_));
            assert!(!at_the_source || !whole_came || lost, "the end was there and was not seen");
        }
    }
}

/// The bytes after the body are complete: read and given back, or not read.
fn next_message(case: &Case, sent: &SentMessage, outcome: &Outcome) {
    let arrived = match case.end {
        End::SourceCloses(at) | End::SourceFails(at) => at.min(sent.bytes.len()),
        _ => sent.bytes.len(),
    };
    assert!(outcome.consumed >= sent.body.min(arrived), "it ended before the body");
    assert!(outcome.rest == sent.bytes[sent.body.min(arrived)..outcome.consumed], "the next message is not whole");
}

/// The payload in the first bytes of a body.
fn payload_of(case: &Case, sent: &SentMessage, bytes: usize) -> Vec<u8> {
    if !matches!(case.coding, Coding::Chunked(..)) {
        return sent.payload[..bytes].to_vec();
    }
    let (mut coded, mut into) = (sent.bytes[..bytes].to_vec(), Chunked::default());
    if case.end == End::Malformed {
        return sent.payload.clone();
    }
    if !decode_chunks(&mut coded, &mut into)
        && let Some(line) = coded.windows(2).position(|two| two == b"\r\n")
    {
        let size = usize::from_str_radix(std::str::from_utf8(&coded[..line]).expect("a size"), 16).expect("a size");
        let data = &coded[line + 2..];
        into.body.extend_from_slice(&data[..data.len().min(size)]);
    }
    into.body
}
