//! QPACK: any instructions and field sections. The table is the same for any pieces of the instructions and stays within
//! its capacity; a section that is accepted as a request has the same content when it is encoded again, as HTTP/1 and as
//! HTTP/3.

use wire::h1::Edits;
use wire::h3::qpack::{AcknowledgmentReader, Decoder, Progress, TableLimits};
use wire::h3::{Capacity, MessagePart, MessageReader, Outcome, Role, encode_request, request_reader};
use wire::http::{Head, Method};

use crate::h2_request::read_again;

const CAPACITY: Capacity = Capacity { bytes: 4096, fields: 100 };

/// The capacity of the table in bytes.
const TABLE: u32 = 256;

/// Runs on one input: a byte that selects the length of the instructions, one that selects the size of their pieces, the
/// instructions, and a section; panics if a property is violated.
pub fn run(data: &[u8]) {
    let Some(([cut, step], bytes)) = data.split_first_chunk::<2>() else { return };
    let (instructions, section) = bytes.split_at(usize::from(*cut).min(bytes.len()));
    let _ = AcknowledgmentReader::default().read(instructions);
    let mut whole = decoder(TABLE);
    let mut pieces = decoder(TABLE);
    let mut pieces_of = instructions.chunks(usize::from(*step).max(1));
    let applied = whole.read_instructions(instructions);
    assert_eq!(pieces_of.try_for_each(|piece| pieces.read_instructions(piece)), applied);
    if applied.is_err() {
        return;
    }
    for decoder in [&whole, &pieces] {
        assert!(decoder.table_size() <= TABLE as usize && decoder.held() < 8 * TABLE as usize);
    }
    wait(instructions, section);
    let mut head = Head::new();
    if !read(&mut whole, section, &mut head) {
        return;
    }
    assert!(whole.output().len() < 32);
    if head.known_method() != Method::Connect {
        read_again(&head);
        encode_again(&head);
    }
}

fn decoder(capacity: u32) -> Decoder {
    Decoder::new(TableLimits { capacity, blocked: 1 })
}

/// Decodes a section that arrives before the instructions.
fn wait(instructions: &[u8], section: &[u8]) {
    let (mut decoder, mut fields) = (decoder(TABLE), 0);
    if decoder.decode(0, section, CAPACITY, |_| fields += 1) != Ok(Progress::Blocked) {
        return;
    }
    assert_eq!((fields, decoder.take_unblocked()), (0, None));
    assert_eq!(decoder.read_instructions(instructions), Ok(()));
    // The limit of one waiting stream.
    let is_ready = decoder.take_unblocked() == Some(0);
    let other = decoder.decode(4, &[9, 0, 0x80], CAPACITY, |_| {});
    assert!(is_ready || other != Ok(Progress::Blocked), "two streams wait");
    let _ = decoder.decode(0, section, CAPACITY, |_| {});
    decoder.cancel(0);
    assert!(decoder.output().len() < 32);
}

/// Reads the head of a request; false if it is invalid.
fn read(decoder: &mut Decoder, section: &[u8], head: &mut Head) -> bool {
    let mut reader = request_reader(head, CAPACITY, true);
    let progress = decoder.decode(0, section, CAPACITY, |field| reader.field(field));
    progress == Ok(Progress::Complete) && reader.finish(true, false) == Ok(Outcome::Request)
}

/// Returns the fields, apart from those that depend on the version.
fn fields(head: &Head) -> Vec<(&[u8], &[u8])> {
    let is_other = |name: &[u8]| !matches!(name, b"content-length" | b"connection" | b"upgrade");
    head.fields().filter(|(name, _)| is_other(name)).collect()
}

fn encode_again(head: &Head) {
    let mut frame = Vec::new();
    assert!(encode_request(head, &Edits { framing: head.framing, ..Edits::default() }, &mut frame).is_ok());
    let (mut input, mut frames) = (&frame[..], MessageReader::new(Role::Server, 1 << 20));
    let Ok(Some(MessagePart::Head(section))) = frames.next(&mut input) else { panic!("it is a head") };
    assert!(input.is_empty());
    let mut again = Head::new();
    assert!(read(&mut decoder(0), section, &mut again), "{section:x?}");
    assert_eq!((again.method(), again.target()), (head.method(), head.target()));
    assert_eq!((again.framing, again.upgrade), (head.framing, head.upgrade));
    assert_eq!(fields(&again), fields(head));
}
