//! Hashes the key of a request, for the algorithms that hash (configuration manual, "balance", "hash-type"). The bytes
//! of the key, and the treatment of an empty one, follow HAProxy 3.5. Must never allocate.

use base::hash;
use config::spec::{BalanceSpec, HashFunction, HashMethod, HashSpec, UriSpec};
use std::net::IpAddr;
use wire::http::Head;
use wire::rdp;

/// The data of a request when its server is chosen.
#[derive(Debug, Clone, Copy, Default)]
pub struct Subject<'a> {
    /// The client's address.
    pub source: Option<IpAddr>,
    /// The head of an HTTP request.
    pub request: Option<&'a Head>,
    /// The received part of a request's body (of its first chunk, if it is chunked), or of the data from a TCP client.
    pub bytes: &'a [u8],
}

/// Hashes requests.
#[derive(Debug, Clone, PartialEq)]
pub struct Recogniser {
    by: BalanceSpec,
    function: HashFunction,
    avalanche: bool,
}

impl Recogniser {
    /// Creates one for a configuration; `None` if the algorithm does not hash.
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

    /// Returns the request's hash; `None` if it lacks the key.
    pub fn hash(&self, subject: &Subject<'_>) -> Option<u32> {
        let hash = match &self.by {
            // Addresses are numbers already: no hash function is applied to them.
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

    /// Returns the hash of a key extracted elsewhere.
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

/// Returns the XOR of the address's 32-bit words, most significant byte first.
fn of_address(address: IpAddr) -> u32 {
    match address {
        IpAddr::V4(address) => u32::from(address),
        IpAddr::V6(address) => {
            let bits = u128::from(address);
            (bits >> 96) as u32 ^ (bits >> 64) as u32 ^ (bits >> 32) as u32 ^ bits as u32
        }
    }
}

/// Returns the part of the request target that is hashed.
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

/// Returns the target from its path on: without scheme and authority; empty for `*`.
fn path(target: &[u8]) -> &[u8] {
    if target.first() == Some(&b'/') {
        return target;
    }
    let Some(scheme) = target.windows(3).position(|three| three == b"://") else { return &[] };
    let behind = &target[scheme + 3..];
    let end = behind.iter().position(|byte| matches!(byte, b'/' | b'?')).unwrap_or(behind.len());
    &behind[end..]
}

/// Returns the value of a parameter in the query, otherwise in the body of a POST request.
fn parameter<'a>(subject: &Subject<'a>, name: &[u8]) -> Option<&'a [u8]> {
    let request = subject.request?;
    let target = request.target();
    let query = target.iter().position(|byte| *byte == b'?').map(|mark| &target[mark + 1..]);
    let in_query = query.and_then(|query| value_of(query, name));
    in_query.or_else(|| {
        let value = value_of(subject.bytes, name).filter(|_| request.method() == b"POST")?;
        // A parameter ends at white space; with other control characters it is invalid.
        let end = value.iter().position(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n')).unwrap_or(value.len());
        let value = &value[..end];
        value.iter().all(u8::is_ascii_graphic).then_some(value)
    })
}

/// Returns the value of the first `name=value` between ampersands.
fn value_of<'a>(parameters: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let mut pairs = parameters.split(|byte| *byte == b'&');
    pairs.find_map(|pair| pair.strip_prefix(name)?.strip_prefix(b"="))
}

/// Returns the first value of a comma-separated field; commas in quotes do not separate.
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

/// Returns the label before the last dot; the whole host if there is no dot.
fn domain(host: &[u8]) -> &[u8] {
    let Some(end) = host.iter().rposition(|byte| *byte == b'.').filter(|end| *end > 0) else { return host };
    // The label has at least one character of any kind.
    let start = host[..end - 1].iter().rposition(|byte| *byte == b'.').map_or(0, |dot| dot + 1);
    &host[start..end]
}

/// Parses the number at the start of a text like C's `atol`, in 32 bits.
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
