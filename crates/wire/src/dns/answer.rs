//! Parses DNS responses and evaluates them for a query. Must never read beyond a record, nor accept a response to
//! another query.

use super::{HEADER, INTERNET, Kind, Malformed, Name};
use std::net::IpAddr;

/// Maximum length of a CNAME chain.
pub const MOST_ALIASES: usize = 16;

/// Record type CNAME.
pub(super) const CNAME: u16 = 5;
/// The header flag QR: the message is a response.
const IS_ANSWER: u16 = 0x8000;
/// The header flag TC: the message is truncated.
const IS_TRUNCATED: u16 = 0x0200;
/// Length of a resource record's fixed fields in bytes, after its name.
const RECORD: usize = 10;

/// The response code (RCODE).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseCode {
    /// Success.
    NoError,
    /// NXDOMAIN: the name does not exist.
    NoSuchName,
    /// The server refuses to answer.
    Refused,
    /// Any other code.
    Other(u8),
}

/// A response message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The ID of the query.
    pub id: u16,
    /// The message is truncated (TC).
    pub is_truncated: bool,
    pub code: ResponseCode,
    /// The question section: name and type.
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

/// An SRV record: a host that offers a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    /// Lower values are preferred.
    pub priority: u16,
    /// Relative weight among records of the same priority.
    pub weight: u16,
    pub port: u16,
    /// The name of the host.
    pub target: Name,
}

/// The address of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// The name of the host.
    pub host: Name,
    pub ip: IpAddr,
}

/// The records that answer a query.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AnswerRecords {
    /// Addresses in order, without duplicates.
    pub addresses: Vec<IpAddr>,
    /// SRV records, in order.
    pub services: Vec<Service>,
    /// Addresses of the SRV targets that the additional section contains.
    pub additional: Vec<Address>,
    /// TXT records, the strings of each concatenated (RFC 7208, section 3.3).
    pub texts: Vec<Vec<u8>>,
    /// The name was an alias (CNAME).
    pub was_alias: bool,
}

/// Why a response cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The question section differs from the query.
    OtherQuestion,
    /// The response is truncated.
    Truncated,
    /// The server reported an error, such as NXDOMAIN or REFUSED.
    Code(ResponseCode),
    /// No record of the requested type.
    Empty,
    /// The CNAME chain has no end in the response or contains a loop.
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

    /// Parses the records of a section; types that are not used are skipped.
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
                && let Some(data) = self.data(kind, data, begin)?
            {
                records.push(Record { name, data });
            }
            self.at = end;
        }
        Ok(records)
    }

    fn data(&self, kind: u16, data: &[u8], begin: usize) -> Result<Option<Data>, Malformed> {
        // A name in a record has to end at the end of the record.
        let name = |at: usize| match Name::read(self.message, at)? {
            (name, behind) if behind == begin + data.len() => Ok(name),
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

/// Concatenates the length-prefixed strings of a TXT record (RFC 1035, section 3.3.14).
fn text(mut data: &[u8]) -> Result<Vec<u8>, Malformed> {
    let mut text = Vec::with_capacity(data.len());
    while let Some((length, rest)) = data.split_first() {
        let (part, behind) = rest.split_at_checked(usize::from(*length)).ok_or(Malformed)?;
        text.extend_from_slice(part);
        data = behind;
    }
    Ok(text)
}

/// Parses a response. Bytes after the message are ignored.
///
/// # Errors
/// The message is not a response, or it is malformed.
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
    // A truncated message may have been cut anywhere.
    if !is_truncated {
        answer.answers = reader.records(answers)?;
        reader.records(authorities)?;
        answer.additional = reader.records(additional)?;
    }
    Ok(answer)
}

/// Returns the records that answer a query for `name` and `kind`.
///
/// # Errors
/// The response does not answer the query; the fault contains the reason.
pub fn find(answer: Answer, name: &Name, kind: Kind) -> Result<AnswerRecords, Fault> {
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
    let mut found = AnswerRecords { was_alias: end != *name, ..AnswerRecords::default() };
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

/// Adds an address unless it is a duplicate or the unspecified address, which belongs to no host.
fn push(addresses: &mut Vec<IpAddr>, ip: IpAddr) {
    if !ip.is_unspecified() && !addresses.contains(&ip) {
        addresses.push(ip);
    }
}

/// Returns the name at the end of the CNAME chain.
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
