//! Many datagrams with one system call. Neighbours of one length travel through the kernel together (UDP segmentation
//! offload) and come apart where they are received, so that the way there is taken once for all of them.
//!
//! It must never change a datagram or the order of any.

use std::io::{self, IoSlice};
use std::mem;
use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use super::address::RawAddress;
use super::check;
use super::socket::{message_of, option};

/// Messages that one call takes.
const BATCH: usize = 64;
/// Datagrams that travel together at most: what the first kernels with the option take.
const MOST_TOGETHER: usize = 64;
/// Bytes of them: an IP packet has so much room behind its heads, whatever the family.
const MOST_BYTES: usize = 65_000;
/// Bytes of a datagram that fit into one packet on every link that carries IPv6: longer ones travel alone, since the kernel
/// refuses them together where they do not fit.
const LONGEST: usize = 1_232;
/// The option of `linux/udp.h`.
const UDP_SEGMENT: libc::c_int = 103;

/// Whether the kernel lets datagrams of one length travel together. Older ones ignore what they are told with a message and
/// would make one datagram of them.
pub(crate) fn knows_segments(fd: &OwnedFd) -> bool {
    option(fd.as_raw_fd(), libc::IPPROTO_UDP, UDP_SEGMENT).is_ok()
}

/// Whether that is what the kernel says where datagrams cannot travel together: to a link with small packets, over a device
/// that leaves checksums to others, through a tunnel that encrypts.
pub(crate) fn is_about_segments(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EIO | libc::EINVAL | libc::EMSGSIZE | libc::EOPNOTSUPP))
}

/// What a message tells the kernel beside its bytes: the length of each datagram.
#[repr(C)]
#[derive(Clone, Copy)]
struct Control {
    head: libc::cmsghdr,
    length: u16,
    /// Control data is padded to whole words.
    padding: [u8; mem::size_of::<usize>() - mem::size_of::<u16>()],
}

impl Control {
    fn of(length: usize) -> Control {
        // SAFETY: all bytes zero is a valid value of this plain structure.
        let mut control: Control = unsafe { mem::zeroed() };
        control.head.cmsg_level = libc::IPPROTO_UDP;
        control.head.cmsg_type = UDP_SEGMENT;
        control.head.cmsg_len = (mem::offset_of!(Control, length) + mem::size_of::<u16>()) as _;
        control.length = length as u16;
        control
    }
}

/// The datagrams from `first` on that may travel together: all of one length but the last, which may be shorter.
fn group(datagrams: &[IoSlice<'_>], first: usize) -> Range<usize> {
    let length = datagrams[first].len();
    let mut end = first + 1;
    if length == 0 || length > LONGEST {
        return first..end;
    }
    let most = (first + MOST_TOGETHER.min(MOST_BYTES / length)).min(datagrams.len());
    while end < most && datagrams[end].len() == length {
        end += 1;
    }
    if end < most && (1..length).contains(&datagrams[end].len()) {
        end += 1;
    }
    first..end
}

/// Sends one datagram for each element of `datagrams` to the same address with as few calls as possible; returns how
/// many the kernel took. `together`: those of one length may travel as one.
///
/// # Errors
/// The kernel's, when the first message fails; it may have been several datagrams.
pub(crate) fn send_datagrams(
    fd: RawFd,
    datagrams: &[IoSlice<'_>],
    to: Option<&RawAddress>,
    together: bool,
) -> io::Result<usize> {
    let mut sent = 0;
    while sent < datagrams.len() {
        let mut ends = [0; BATCH];
        let mut count = 0;
        let mut next = sent;
        // SAFETY: all bytes zero is a valid value of these plain structures.
        let (mut messages, mut controls): ([libc::mmsghdr; BATCH], [Control; BATCH]) = unsafe { mem::zeroed() };
        while next < datagrams.len() && count < BATCH {
            let members = if together { group(datagrams, next) } else { next..next + 1 };
            next = members.end;
            let (head, control) = (&mut messages[count].msg_hdr, &mut controls[count]);
            *head = message_of(&datagrams[members.clone()], to);
            if members.len() > 1 {
                *control = Control::of(datagrams[members.start].len());
                head.msg_control = (&raw mut *control).cast();
                head.msg_controllen = mem::size_of::<Control>() as _;
            }
            ends[count] = next;
            count += 1;
        }
        let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
        // SAFETY: the first `count` messages point to slices, an address and control data that are valid for the call.
        let taken = unsafe { libc::sendmmsg(fd, messages.as_mut_ptr(), count as u32, flags as _) };
        match check(taken) {
            Ok(0) => break,
            Ok(taken) => sent = ends[taken as usize - 1],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if sent == 0 && error.kind() != io::ErrorKind::WouldBlock => return Err(error),
            Err(_) => break,
        }
    }
    Ok(sent)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(lengths: &[usize]) -> Vec<usize> {
        let bytes = vec![0; 70_000];
        let slices: Vec<IoSlice<'_>> = lengths.iter().map(|length| IoSlice::new(&bytes[..*length])).collect();
        let mut found = Vec::new();
        let mut next = 0;
        while next < slices.len() {
            let members = group(&slices, next);
            next = members.end;
            found.push(members.len());
        }
        found
    }

    #[test]
    fn neighbours_of_one_length_travel_together_and_a_shorter_one_ends_them() {
        assert_eq!(groups(&[5, 5, 5]), [3]);
        assert_eq!(groups(&[5, 5, 4, 4, 5, 4, 3]), [3, 1, 2, 1]);
        assert_eq!(groups(&[4, 5, 6]), [1, 1, 1]);
        assert_eq!(groups(&[5, 0, 0, 5]), [1, 1, 1, 1]);
    }

    #[test]
    fn long_datagrams_travel_alone_and_groups_are_bounded() {
        assert_eq!(groups(&[LONGEST, LONGEST, LONGEST + 1, LONGEST + 1]), [2, 1, 1]);
        assert_eq!(groups(&[9; 150]), [64, 64, 22]);
        assert_eq!(groups(&[LONGEST; 60]), [MOST_BYTES / LONGEST, 60 - MOST_BYTES / LONGEST]);
    }
}
