//! What a request is recognised by, for the algorithms that hash (configuration manual, "balance", "hash-type"). Which
//! bytes are the key, and what becomes of an empty one, is what HAProxy 3.5 shows. Must never allocate.

use base::hash;
use config::spec::{BalanceSpec, HashFunction, HashMethod, HashSpec, UriSpec};
use std::net::IpAddr;
use wire::http::Head;
use wire::rdp;

/// What is known of a request when its server is chosen.
#[derive(Debug, Clone, Copy, Default)]
pub struct Subject<'a> {
    /// The client's address.
    pub source: Option<IpAddr>,
    /// The head of an HTTP request.
    pub request: Option<&'a Head>,
    /// What is here of the body of a request (of its first chunk, if it is chunked), or of what a TCP client sent.
    pub bytes: &'a [u8],
}

/// Makes a hash of a request.
#[derive(Debug, Clone, PartialEq)]
pub struct Recogniser {
    by: BalanceSpec,
    function: HashFunction,
    avalanche: bool,
}

impl Recogniser {
    /// For what the configuration says; `None` where the algorithm does not hash.
    pub fn new(by: &BalanceSpec, hash: &HashSpec) -> Option<Self> {
        let elsewhere = matches!(by, BalanceSpec::LogHash(_) | BalanceSpec::Hash(_));
        let hashes = matches!(by, BalanceSpec::Source | BalanceSpec::RdpCookie { .. }) || elsewhere || by.needs_http();
        let by_default = hash.function.is_none() && hash.method == HashMethod::Consistent;
        hashes.then(|| Self {
            by: by.clone(),
            function: hash.function.unwrap_or(HashFunction::Sdbm),
            avalanche: hash.avalanche || by_default,
        })
    }

    /// The request's hash; `None` where it lacks what it would be recognised by.
    pub fn hash(&self, subject: &Subject<'_>) -> Option<u32> {
        let hash = match &self.by {
            // Addresses are numbers already: no function is applied to them.
            BalanceSpec::Source => of_address(subject.source?),
            BalanceSpec::Uri(uri) => self.number(of_uri(subject.request?.target(), uri)),
            BalanceSpec::UrlParam { name, .. } => self.number(parameter(subject, name.as_bytes())?),
            BalanceSpec::Header { name, domain_only } => {
                let value = first_value(subject.request?.first(name.as_bytes())?)?;
                self.number(if *domain_only { domain(value) } else { value })
            }
            BalanceSpec::RdpCookie { name } => self.number(rdp::cookie(subject.bytes, name.as_bytes())?),
            _ => return None,
        };
        Some(if self.avalanche { hash::avalanche(hash) } else { hash })
    }

    /// The hash of a key that was found elsewhere.
    pub fn of_key(&self, key: &[u8]) -> u32 {
        let hash = self.number(key);
        if self.avalanche { hash::avalanche(hash) } else { hash }
    }

    fn number(&self, key: &[u8]) -> u32 {
        match self.function {
            HashFunction::Sdbm => hash::sdbm(key),
            HashFunction::Djb2 => hash::djb2(key),
            HashFunction::Wt6 => hash::wt6(key),
            HashFunction::Crc32 => hash::crc32(key),
            HashFunction::None => leading_number(key),
        }
    }
}

/// The address's 32-bit words, most significant byte first, joined by exclusive or.
fn of_address(address: IpAddr) -> u32 {
    match address {
        IpAddr::V4(address) => u32::from(address),
        IpAddr::V6(address) => {
            let bits = u128::from(address);
            (bits >> 96) as u32 ^ (bits >> 64) as u32 ^ (bits >> 32) as u32 ^ bits as u32
        }
    }
}

/// The part of the request's target that counts.
fn of_uri<'a>(target: &'a [u8], uri: &UriSpec) -> &'a [u8] {
    let mut key = if uri.path_only { path(target) } else { target };
    key = &key[..key.len().min(uri.len.map_or(usize::MAX, |len| len as usize))];
    let mut slashes = 0;
    let end = key.iter().position(|byte| {
        slashes += u32::from(*byte == b'/');
        (*byte == b'?' && !uri.whole) || (*byte == b'/' && uri.depth.is_some_and(|depth| slashes > depth))
    });
    &key[..end.unwrap_or(key.len())]
}

/// The target from its path on: without scheme and authority; nothing of `*`.
fn path(target: &[u8]) -> &[u8] {
    if target.first() == Some(&b'/') {
        return target;
    }
    let Some(scheme) = target.windows(3).position(|three| three == b"://") else { return &[] };
    let behind = &target[scheme + 3..];
    let end = behind.iter().position(|byte| matches!(byte, b'/' | b'?')).unwrap_or(behind.len());
    &behind[end..]
}

/// The value of a parameter in the query, or else in the body of a POST request.
fn parameter<'a>(subject: &Subject<'a>, name: &[u8]) -> Option<&'a [u8]> {
    let request = subject.request?;
    let target = request.target();
    let query = target.iter().position(|byte| *byte == b'?').map(|mark| &target[mark + 1..]);
    let in_query = query.and_then(|query| value_of(query, name));
    in_query.or_else(|| {
        let value = value_of(subject.bytes, name).filter(|_| request.method() == b"POST")?;
        // Behind white space no parameter goes on; other control characters are no parameter's.
        let end = value.iter().position(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n')).unwrap_or(value.len());
        let value = &value[..end];
        value.iter().all(u8::is_ascii_graphic).then_some(value)
    })
}

/// The value of the first `name=value` between ampersands.
fn value_of<'a>(parameters: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let mut pairs = parameters.split(|byte| *byte == b'&');
    pairs.find_map(|pair| pair.strip_prefix(name)?.strip_prefix(b"="))
}

/// A field's first value that is one: commas separate values, except between quotes.
fn first_value(field: &[u8]) -> Option<&[u8]> {
    let (mut quoted, mut escaped) = (false, false);
    let end = field.iter().position(|byte| {
        let was_escaped = std::mem::take(&mut escaped);
        match byte {
            b'\\' if quoted && !was_escaped => escaped = true,
            b'"' if !was_escaped => quoted = !quoted,
            _ => {}
        }
        *byte == b',' && !quoted
    });
    let value = field[..end.unwrap_or(field.len())].trim_ascii();
    (!value.is_empty()).then_some(value)
}

/// The label in front of the last dot; all of it where there is none.
fn domain(host: &[u8]) -> &[u8] {
    let Some(end) = host.iter().rposition(|byte| *byte == b'.').filter(|end| *end > 0) else { return host };
    // The label has a character at least, whatever it is.
    let start = host[..end - 1].iter().rposition(|byte| *byte == b'.').map_or(0, |dot| dot + 1);
    &host[start..end]
}

/// The number that a text starts with, as C reads it, in 32 bits.
fn leading_number(text: &[u8]) -> u32 {
    let text = text.trim_ascii_start();
    let (negative, digits) = match text.first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let digits = digits.iter().take_while(|byte| byte.is_ascii_digit());
    let number = digits.fold(0_u32, |number, digit| number.wrapping_mul(10).wrapping_add(u32::from(digit - b'0')));
    if negative { number.wrapping_neg() } else { number }
}

#[cfg(test)]
mod tests;
