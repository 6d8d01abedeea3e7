//! A body's way as data: what a source sends, what stands in its way, how it ends; and what has to arrive. Owns the
//! expectation; must never look at a flow.

use base::buffer::Buffer;
use base::moment::Moment;
use testkit::{Chunked, decode_chunks, encode_chunks, text};
use weir_conn::flow::{BodyFilter, Passed, body_buffer, forward};
use wire::http::Framing;

/// How the source's body is framed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Coding {
    None,
    Length,
    /// With chunks of these sizes, over and over, and so many trailers.
    Chunked(Vec<usize>, usize),
    UntilClose,
}

/// How a transfer ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Whole,
    /// The source closes its direction after so many bytes.
    SourceCloses(usize),
    /// The source fails after so many bytes.
    SourceFails(usize),
    /// The sink fails after so many bytes.
    SinkFails(usize),
    /// The last chunk is none.
    Malformed,
    /// After so many polls the sink is gone, and the source is read to its end.
    Abandoned(usize),
    /// After so many polls, and once more after so many, what was recorded goes to another sink.
    Rewound(usize, usize),
}

/// What stands in the way of the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter {
    Absent,
    Through,
    /// Lets go so many bytes at a time.
    Splits(usize),
    /// Each byte comes twice.
    Doubles,
    Drops,
    /// Holds each piece back so many times.
    Holds(usize),
    /// Something follows the body.
    Appends,
}

/// What [`Filter::Appends`] appends.
const SUFFIX: &[u8] = b"<end>";

/// One transfer.
#[derive(Clone, Debug)]
pub struct Case {
    pub seed: u64,
    pub coding: Coding,
    /// Bytes of the payload.
    pub payload: usize,
    /// Bytes of the next message.
    pub after: usize,
    /// Bytes of both that were read along with the head.
    pub early: usize,
    /// Bytes of the head that goes out first.
    pub head: usize,
    /// The sink is framed in chunks.
    pub chunked: bool,
    pub filter: Filter,
    pub recorded: bool,
    pub spliced: bool,
    pub closes: bool,
    pub end: End,
}

/// What a source sends.
pub struct Sent {
    /// All of its bytes.
    pub bytes: Vec<u8>,
    /// How many of them are the body, its framing included.
    pub body: usize,
    pub payload: Vec<u8>,
    pub trailers: Vec<(String, String)>,
    pub framing: Framing,
}

impl Case {
    /// The same case, with what contradicts itself put right.
    pub fn settled(mut self) -> Self {
        if self.coding == Coding::None {
            // A message without a body has nothing to frame, and nothing is put in its way.
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

    pub fn sent(&self) -> Sent {
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
        Sent { bytes, body, payload, trailers, framing }
    }

    /// The head that goes out first, of the sink of that number.
    pub fn head_text(&self, number: u64) -> Vec<u8> {
        text(self.head, self.seed + 2 + number)
    }

    /// What the filter makes of a whole payload, and of the beginning of one.
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

/// A filter at work.
struct Acts {
    filter: Filter,
    /// How often it has held this piece back; whether it has appended.
    done: usize,
}

impl BodyFilter for Acts {
    fn pass(&mut self, input: &mut Buffer, output: &mut Buffer, ended: bool) -> Passed {
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
                    return Passed::Until(Moment::ZERO);
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
            return Passed::Again;
        }
        if ended && self.filter == Filter::Appends && self.done == 0 {
            if output.is_empty() {
                *output = body_buffer();
            }
            if !output.push(SUFFIX) {
                return Passed::Again;
            }
            self.done = 1;
        }
        Passed::Through
    }
}

/// What a sink got behind its head: the payload, and whether it came to its end.
pub fn unframed(case: &Case, got: &[u8]) -> (Vec<u8>, Option<Vec<(String, String)>>) {
    if !case.chunked {
        return (got.to_vec(), None);
    }
    let (mut coded, mut into) = (got.to_vec(), Chunked::default());
    if decode_chunks(&mut coded, &mut into) {
        assert!(coded.is_empty(), "{} bytes after the last chunk", coded.len());
        return (into.body, Some(into.trailers));
    }
    // What is left is a part of one chunk or of the end.
    if let Some(line) = coded.windows(2).position(|two| two == b"\r\n") {
        let size = usize::from_str_radix(std::str::from_utf8(&coded[..line]).expect("a size"), 16).expect("a size");
        let data = &coded[line + 2..];
        into.body.extend_from_slice(&data[..data.len().min(size)]);
    }
    (into.body, None)
}

/// What a transfer came to.
pub struct Outcome {
    /// `Ok`, or the name of the error.
    pub result: Result<(), &'static str>,
    /// What the last sink got, its head included.
    pub got: Vec<u8>,
    /// Bytes that were read behind the body.
    pub rest: Vec<u8>,
    /// Of the source, so many bytes were read.
    pub consumed: usize,
}

/// Judges an outcome. `exact`: a sink that fails takes what it takes and no more, and a source that fails has sent what it
/// has sent.
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
            // A reset may overtake bytes that its sender still had to send.
            let lost = !exact && matches!(case.end, End::SourceFails(_));
            assert!(!at_the_source || !whole_came || lost, "the end was there and was not seen");
        }
    }
}

/// What followed the body is all there still: read and given back, or not read.
fn next_message(case: &Case, sent: &Sent, outcome: &Outcome) {
    let arrived = match case.end {
        End::SourceCloses(at) | End::SourceFails(at) => at.min(sent.bytes.len()),
        _ => sent.bytes.len(),
    };
    assert!(outcome.consumed >= sent.body.min(arrived), "it ended before the body");
    assert!(outcome.rest == sent.bytes[sent.body.min(arrived)..outcome.consumed], "the next message is not whole");
}

/// The payload in the first bytes of a body.
fn payload_of(case: &Case, sent: &Sent, bytes: usize) -> Vec<u8> {
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
