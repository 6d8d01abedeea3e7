//! Control data of messages (cmsg(3)): written for the kernel, and read from it.
//!
//! It must never trust a length: what does not fit is left out when writing, and ends the data when reading.

use std::mem;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ptr;

/// Control data begins at, and is padded to, multiples of this.
const ALIGNMENT: usize = mem::size_of::<usize>();
/// Size of the header of an entry in bytes, padding included.
const HEAD: usize = padded(mem::size_of::<libc::cmsghdr>());
/// Space in bytes for what is written: a source address (20 bytes), ECN bits (4) and a segment size (2), and a header each.
const CAPACITY: usize = 3 * HEAD + padded(20) + padded(4) + padded(2);

const fn padded(length: usize) -> usize {
    length.next_multiple_of(ALIGNMENT)
}

/// Control data for one message to be sent.
#[repr(C, align(8))]
pub(crate) struct ControlData {
    bytes: [u8; CAPACITY],
    length: usize,
}

impl ControlData {
    pub(crate) fn new() -> ControlData {
        ControlData { bytes: [0; CAPACITY], length: 0 }
    }

    /// Returns the bytes written so far.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// Appends an entry.
    pub(crate) fn push(&mut self, level: i32, kind: i32, value: &[u8]) {
        let space = HEAD + padded(value.len());
        let Some(place) = self.bytes.get_mut(self.length..self.length + space) else { return };
        // SAFETY: all bytes zero is a valid value of this plain structure.
        let mut head: libc::cmsghdr = unsafe { mem::zeroed() };
        (head.cmsg_level, head.cmsg_type) = (level, kind);
        head.cmsg_len = (HEAD + value.len()) as _;
        // SAFETY: the place is at least as long as the header; no alignment is required.
        unsafe { ptr::write_unaligned(place.as_mut_ptr().cast(), head) };
        place[HEAD..HEAD + value.len()].copy_from_slice(value);
        self.length += space;
    }

    /// Sets the source address of the message.
    pub(crate) fn push_source(&mut self, source: IpAddr) {
        match source.to_canonical() {
            IpAddr::V4(source) => {
                // `in_pktinfo`: the index of the interface, the source address, and one that only the kernel sets.
                let mut value = [0; 12];
                value[4..8].copy_from_slice(&source.octets());
                self.push(libc::IPPROTO_IP, libc::IP_PKTINFO, &value);
            }
            IpAddr::V6(source) => {
                // `in6_pktinfo`: the address and the index of the interface.
                let mut value = [0; 20];
                value[..16].copy_from_slice(&source.octets());
                self.push(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, &value);
            }
        }
    }

    /// Sets the ECN bits of the message's packets, which are of that IP version.
    pub(crate) fn push_ecn(&mut self, bits: u8, is_v4: bool) {
        let value = libc::c_int::from(bits).to_ne_bytes();
        match is_v4 {
            true => self.push(libc::IPPROTO_IP, libc::IP_TOS, &value),
            false => self.push(libc::IPPROTO_IPV6, libc::IPV6_TCLASS, &value),
        }
    }
}

/// One entry of received control data.
struct Entry<'a> {
    level: i32,
    kind: i32,
    value: &'a [u8],
}

/// Removes the first entry from `data`; `None` at its end.
fn next<'a>(data: &mut &'a [u8]) -> Option<Entry<'a>> {
    if data.len() < HEAD {
        return None;
    }
    // SAFETY: there are at least as many bytes; no alignment is required, and every value of the bytes is valid.
    let head: libc::cmsghdr = unsafe { ptr::read_unaligned(data.as_ptr().cast()) };
    let length = head.cmsg_len as usize;
    let value = data.get(HEAD..length)?;
    *data = data.get(padded(length)..).unwrap_or_default();
    Some(Entry { level: head.cmsg_level, kind: head.cmsg_type, value })
}

/// Properties of a received message, from its control data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ControlInfo {
    /// The destination address of the packets.
    pub(crate) local_ip: Option<IpAddr>,
    /// The two ECN bits.
    pub(crate) ecn: u8,
    /// Length in bytes of each datagram of the message, except of the last one; 0: there is only one.
    pub(crate) stride: usize,
}

/// The option and the control data from `linux/udp.h` that join received datagrams.
pub(crate) const UDP_GRO: libc::c_int = 104;

/// Reads the control data of a received message. Entries that are not known are skipped.
pub(crate) fn read(mut data: &[u8]) -> ControlInfo {
    let mut info = ControlInfo::default();
    while let Some(Entry { level, kind, value }) = next(&mut data) {
        match (level, kind) {
            (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                let octets = value.get(8..12).and_then(|octets| <[u8; 4]>::try_from(octets).ok());
                info.local_ip = octets.map(|octets| Ipv4Addr::from(octets).into());
            }
            (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                let octets = value.get(..16).and_then(|octets| <[u8; 16]>::try_from(octets).ok());
                info.local_ip = octets.map(|octets| IpAddr::from(Ipv6Addr::from(octets)).to_canonical());
            }
            (libc::IPPROTO_IP, libc::IP_TOS) | (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                info.ecn = (number(value) & 0b11) as u8;
            }
            (libc::IPPROTO_UDP, UDP_GRO) => info.stride = number(value) as usize,
            _ => {}
        }
    }
    info
}

/// The contents of a report about a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReportedError {
    pub(crate) error: i32,
    /// The host that has sent the ICMP message; `None`: this host reports it itself.
    pub(crate) offender: Option<IpAddr>,
}

/// Size of `sock_extended_err` in bytes. The address of the offender follows it.
const EXTENDED: usize = 16;

/// Reads a report about a datagram: `sock_extended_err`, whose first word is the error.
pub(crate) fn read_error(mut data: &[u8]) -> Option<ReportedError> {
    while let Some(Entry { level, kind, value }) = next(&mut data) {
        if matches!((level, kind), (libc::IPPROTO_IP, libc::IP_RECVERR) | (libc::IPPROTO_IPV6, libc::IPV6_RECVERR)) {
            let error = value.get(..4).and_then(|value| i32::try_from(number(value)).ok())?;
            return Some(ReportedError { error, offender: value.get(EXTENDED..).and_then(offender) });
        }
    }
    None
}

/// Reads the address of a `sockaddr_in` or `sockaddr_in6`.
fn offender(name: &[u8]) -> Option<IpAddr> {
    let family = i32::from(u16::from_ne_bytes(*name.first_chunk()?));
    match family {
        libc::AF_INET => Some(IpAddr::from(*name.get(4..)?.first_chunk::<4>()?)),
        libc::AF_INET6 => Some(IpAddr::from(*name.get(8..)?.first_chunk::<16>()?).to_canonical()),
        _ => None,
    }
}

/// Returns a number of the kernel's, of one, two or four bytes; 0 for any other length.
fn number(value: &[u8]) -> u32 {
    match *value {
        [byte] => u32::from(byte),
        [a, b] => u32::from(u16::from_ne_bytes([a, b])),
        [a, b, c, d] => u32::from_ne_bytes([a, b, c, d]),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut control = ControlData::new();
        control.push_ecn(0b10, true);
        control.push(libc::IPPROTO_UDP, UDP_GRO, &1200_u16.to_ne_bytes());
        let info = read(control.bytes());
        assert_eq!(info, ControlInfo { local_ip: None, ecn: 0b10, stride: 1200 });
        let mut control = ControlData::new();
        control.push_source("2001:db8::7".parse().unwrap());
        control.push_ecn(0b11, false);
        control.push(libc::SOL_SOCKET, libc::SCM_TIMESTAMP, b"?");
        let local_ip = Some("2001:db8::7".parse().unwrap());
        assert_eq!(read(control.bytes()), ControlInfo { local_ip, ecn: 0b11, stride: 0 });
    }

    #[test]
    fn a_report_has_an_error_and_an_offender() {
        let mut control = ControlData::new();
        control.push_ecn(0b10, true);
        assert_eq!(read_error(control.bytes()), None);
        let report = |family: i32, after: &[u8]| {
            let error = libc::ECONNREFUSED.to_ne_bytes();
            [&error[..], &[0; 12], &(family as u16).to_ne_bytes(), &[0; 2], after].concat()
        };
        let mapped = [&[0; 14][..], &[0xff; 2], &[192, 0, 2, 7]].concat();
        let v4 = Some(IpAddr::from([192, 0, 2, 7]));
        let rows = [
            (report(libc::AF_INET, &[192, 0, 2, 7]), v4),
            (report(libc::AF_INET6, &[&[0; 4][..], &[5; 16]].concat()), Some(IpAddr::from([5; 16]))),
            (report(libc::AF_INET6, &mapped), v4),
            (report(libc::AF_UNSPEC, &[192, 0, 2, 7]), None),
            (report(libc::AF_INET, &[192, 0, 2]), None),
            (report(libc::AF_INET6, &[5; 19]), None),
            (libc::ECONNREFUSED.to_ne_bytes().to_vec(), None),
        ];
        for (value, offender) in rows {
            let mut control = ControlData::new();
            control.push(libc::IPPROTO_IPV6, libc::IPV6_RECVERR, &value);
            assert_eq!(read_error(control.bytes()), Some(ReportedError { error: libc::ECONNREFUSED, offender }));
        }
        let mut short = ControlData::new();
        short.push(libc::IPPROTO_IP, libc::IP_RECVERR, &[0; 3]);
        assert_eq!(read_error(short.bytes()), None);
    }

    #[test]
    fn a_mapped_source_is_an_ipv4_source() {
        let (mut mapped, mut plain) = (ControlData::new(), ControlData::new());
        mapped.push_source("::ffff:192.0.2.1".parse().unwrap());
        plain.push_source("192.0.2.1".parse().unwrap());
        assert_eq!(mapped.bytes(), plain.bytes());
        // `ipi_addr`, which the kernel sets, is the third word.
        let mut value = [0; 12];
        value[8..].copy_from_slice(&[192, 0, 2, 1]);
        let mut received = ControlData::new();
        received.push(libc::IPPROTO_IP, libc::IP_PKTINFO, &value);
        assert_eq!(read(received.bytes()).local_ip, Some("192.0.2.1".parse().unwrap()));
    }

    #[test]
    fn the_space_holds_what_a_message_needs_and_no_more_is_written() {
        let mut control = ControlData::new();
        control.push_source("2001:db8::7".parse().unwrap());
        control.push_ecn(0b01, false);
        control.push(libc::IPPROTO_UDP, UDP_GRO, &1200_u16.to_ne_bytes());
        assert_eq!(control.bytes().len(), CAPACITY);
        assert_eq!(read(control.bytes()).stride, 1200);
        control.push_ecn(0b11, false);
        assert_eq!((control.bytes().len(), read(control.bytes()).ecn), (CAPACITY, 0b01));
    }

    #[test]
    fn cut_and_contradictory_data_ends_early() {
        let mut control = ControlData::new();
        control.push_source("2001:db8::7".parse().unwrap());
        control.push_ecn(0b01, false);
        let whole = control.bytes();
        for end in 0..whole.len() {
            let info = read(&whole[..end]);
            assert!(info.local_ip.is_some() == (end >= HEAD + 20), "{end}");
        }
        for length in [0_usize, 1, HEAD - 1, usize::MAX, usize::MAX - 7] {
            let mut bytes = whole.to_vec();
            bytes[..ALIGNMENT].copy_from_slice(&length.to_ne_bytes());
            assert_eq!(read(&bytes), ControlInfo::default(), "{length}");
        }
    }
}
