//! Reads answers, and what they say to a question. Must never read beyond a record, nor believe an answer to another
//! question.

use super::{HEADER, INTERNET, Kind, Malformed, Name};
use std::net::IpAddr;

/// Aliases that are followed from name to name at most.
pub const MOST_ALIASES: usize = 16;

/// The number of an alias in messages.
pub(super) const CNAME: u16 = 5;
/// The flag of an answer.
const IS_ANSWER: u16 = 0x8000;
/// The flag of one that did not fit.
const IS_TRUNCATED: u16 = 0x0200;
/// Bytes of a record behind its name.
const RECORD: usize = 10;

/// What a name server made of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseCode {
    /// It answered.
    NoError,
    /// There is no such name.
    NoSuchName,
    /// It does not want to answer.
    Refused,
    /// Anything else, by its number.
    Other(u8),
}

/// A message from a name server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// What the question was known by.
    pub id: u16,
    /// The answer did not fit.
    pub is_truncated: bool,
    /// What became of the question.
    pub code: ResponseCode,
    /// What was asked.
    question: (Name, u16),
    answers: Vec<Record>,
    additional: Vec<Record>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Record {
    name: Name,
    data: Data,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Data {
    Address(IpAddr),
    Alias(Name),
    Text(Vec<u8>),
    Service(Service),
}

/// A host that offers a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    /// Lower ones first.
    pub priority: u16,
    /// Its share.
    pub weight: u16,
    /// Its port.
    pub port: u16,
    /// The host.
    pub target: Name,
}

/// The address of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// The host.
    pub host: Name,
    /// Where it is.
    pub ip: IpAddr,
}

/// What an answer says to a question.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Found {
    /// Addresses, each once, in order.
    pub addresses: Vec<IpAddr>,
    /// Services, in order.
    pub services: Vec<Service>,
    /// Addresses of their hosts, as far as they came along.
    pub additional: Vec<Address>,
    /// Texts, each of all its parts (RFC 7208, section 3.3).
    pub texts: Vec<Vec<u8>>,
    /// The name was an alias.
    pub was_alias: bool,
}

/// Why an answer says nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It answers another question.
    OtherQuestion,
    /// It did not fit.
    Truncated,
    /// There is no such name, or the server refused.
    Code(ResponseCode),
    /// There is nothing of the kind that was asked for.
    Empty,
    /// Its aliases lead nowhere, or in a circle.
    BrokenAlias,
}

struct Reader<'a> {
    message: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn number(&mut self) -> Result<u16, Malformed> {
        let bytes = self.message.get(self.at..self.at + 2).ok_or(Malformed)?;
        self.at += 2;
        Ok(u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    fn name(&mut self) -> Result<Name, Malformed> {
        let (name, behind) = Name::read(self.message, self.at)?;
        self.at = behind;
        Ok(name)
    }

    /// The records of a section; those that are of no use are passed over.
    fn records(&mut self, count: u16) -> Result<Vec<Record>, Malformed> {
        let mut records = Vec::new();
        for _ in 0..count {
            let name = self.name()?;
            let header = self.message.get(self.at..self.at + RECORD).ok_or(Malformed)?;
            let (kind, class) =
                (u16::from_be_bytes([header[0], header[1]]), u16::from_be_bytes([header[2], header[3]]));
            let length = usize::from(u16::from_be_bytes([header[8], header[9]]));
            let begin = self.at + RECORD;
            let end = begin + length;
            let data = self.message.get(begin..end).ok_or(Malformed)?;
            if class == INTERNET
                && let Some(data) = self.data(kind, data, (begin, end))?
            {
                records.push(Record { name, data });
            }
            self.at = end;
        }
        Ok(records)
    }

    fn data(&self, kind: u16, data: &[u8], (begin, end): (usize, usize)) -> Result<Option<Data>, Malformed> {
        // A name in a record has to end where the record does.
        let name = |at: usize| match Name::read(self.message, at)? {
            (name, behind) if behind == end => Ok(name),
            _ => Err(Malformed),
        };
        Ok(Some(match kind {
            1 => Data::Address(IpAddr::from(<[u8; 4]>::try_from(data).map_err(|_| Malformed)?)),
            28 => Data::Address(IpAddr::from(<[u8; 16]>::try_from(data).map_err(|_| Malformed)?)),
            16 => Data::Text(text(data)?),
            CNAME => Data::Alias(name(begin)?),
            33 => {
                let [p0, p1, w0, w1, o0, o1, ..] = *data else { return Err(Malformed) };
                Data::Service(Service {
                    priority: u16::from_be_bytes([p0, p1]),
                    weight: u16::from_be_bytes([w0, w1]),
                    port: u16::from_be_bytes([o0, o1]),
                    target: name(begin + 6)?,
                })
            }
            _ => return Ok(None),
        }))
    }
}

/// The parts of a text, each of which begins with its length (RFC 1035, section 3.3.14), as one.
fn text(mut data: &[u8]) -> Result<Vec<u8>, Malformed> {
    let mut text = Vec::with_capacity(data.len());
    while let Some((length, rest)) = data.split_first() {
        let (part, behind) = rest.split_at_checked(usize::from(*length)).ok_or(Malformed)?;
        text.extend_from_slice(part);
        data = behind;
    }
    Ok(text)
}

/// Reads a message. Bytes behind it do not matter.
///
/// # Errors
/// It is no answer, or it is damaged.
pub fn read(message: &[u8]) -> Result<Answer, Malformed> {
    let mut reader = Reader { message: message.get(..super::LONGEST).unwrap_or(message), at: 0 };
    let (id, flags) = (reader.number()?, reader.number()?);
    let (questions, answers, authorities, additional) =
        (reader.number()?, reader.number()?, reader.number()?, reader.number()?);
    debug_assert_eq!(reader.at, HEADER);
    if flags & IS_ANSWER == 0 || questions != 1 {
        return Err(Malformed);
    }
    let question = (reader.name()?, reader.number()?);
    if reader.number()? != INTERNET {
        return Err(Malformed);
    }
    let code = match flags & 0x0f {
        0 => ResponseCode::NoError,
        3 => ResponseCode::NoSuchName,
        5 => ResponseCode::Refused,
        other => ResponseCode::Other(other as u8),
    };
    let is_truncated = flags & IS_TRUNCATED != 0;
    let mut answer = Answer { id, is_truncated, code, question, answers: Vec::new(), additional: Vec::new() };
    // What was cut off may have been cut anywhere.
    if !is_truncated {
        answer.answers = reader.records(answers)?;
        reader.records(authorities)?;
        answer.additional = reader.records(additional)?;
    }
    Ok(answer)
}

/// What an answer says about `name`.
///
/// # Errors
/// Nothing, and why.
pub fn find(answer: Answer, name: &Name, kind: Kind) -> Result<Found, Fault> {
    if answer.question != (name.clone(), kind.number()) {
        return Err(Fault::OtherQuestion);
    }
    if answer.is_truncated {
        return Err(Fault::Truncated);
    }
    if answer.code != ResponseCode::NoError {
        return Err(Fault::Code(answer.code));
    }
    if answer.answers.is_empty() {
        return Err(Fault::Empty);
    }
    let end = follow(&answer.answers, name)?;
    let mut found = Found { was_alias: end != *name, ..Found::default() };
    for record in answer.answers.into_iter().filter(|record| record.name == end) {
        match (record.data, kind) {
            (Data::Address(ip), Kind::A) if ip.is_ipv4() => push(&mut found.addresses, ip),
            (Data::Address(ip), Kind::Aaaa) if ip.is_ipv6() => push(&mut found.addresses, ip),
            (Data::Text(text), Kind::Txt) => found.texts.push(text),
            (Data::Service(service), Kind::Srv) => found.services.push(service),
            _ => {}
        }
    }
    for record in answer.additional {
        if let Data::Address(ip) = record.data
            && kind == Kind::Srv
            && !ip.is_unspecified()
            && found.services.iter().any(|service| service.target == record.name)
        {
            found.additional.push(Address { host: record.name, ip });
        }
    }
    let is_empty = found.addresses.is_empty() && found.services.is_empty() && found.texts.is_empty();
    match (is_empty, found.was_alias) {
        (false, _) => Ok(found),
        (true, true) => Err(Fault::BrokenAlias),
        (true, false) => Err(Fault::Empty),
    }
}

/// The unspecified address belongs to no host.
fn push(addresses: &mut Vec<IpAddr>, ip: IpAddr) {
    if !ip.is_unspecified() && !addresses.contains(&ip) {
        addresses.push(ip);
    }
}

/// The name at the end of the aliases.
fn follow(records: &[Record], name: &Name) -> Result<Name, Fault> {
    let mut name = name;
    for _ in 0..=MOST_ALIASES {
        let alias = records.iter().find_map(|record| match &record.data {
            Data::Alias(target) if record.name == *name => Some(target),
            _ => None,
        });
        match alias {
            Some(target) => name = target,
            None => return Ok(name.clone()),
        }
    }
    Err(Fault::BrokenAlias)
}
