//! Sends many datagrams with one system call. Consecutive ones of one length pass through the kernel together (UDP
//! segmentation offload) and are split at the receiver, so that the network stack is traversed once for all of them.
//!
//! It must never change a datagram or their order.

use std::io::{self, IoSlice};
use std::mem;
use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use super::address::RawAddress;
use super::socket::{message_of, option};
use super::{calls, check};

/// Messages per call.
const BATCH: usize = 64;
/// Maximum number of datagrams sent together: the limit of the first kernels with the option.
const MOST_TOGETHER: usize = 64;
/// Maximum size of these in bytes: fits into an IP packet after its headers, in either family.
const MOST_BYTES: usize = 65_000;
/// Size in bytes of a datagram that fits into one packet on every link that carries IPv6: longer ones are sent alone,
/// since the kernel refuses to combine them if they do not fit.
const LONGEST: usize = 1_232;
/// The option from `linux/udp.h`.
pub(super) const UDP_SEGMENT: libc::c_int = 103;

/// Whether the kernel can send datagrams of one length together. Older ones ignore the control data of a message and
/// would merge them into one datagram.
pub(crate) fn knows_segments(fd: &OwnedFd) -> bool {
    option(fd.as_raw_fd(), libc::IPPROTO_UDP, UDP_SEGMENT).is_ok()
}

/// Whether an error is that of a kernel that cannot send datagrams together: to a link with small packets, over a
/// device without checksum offload, through a tunnel that encrypts.
pub(crate) fn is_about_segments(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EIO | libc::EINVAL | libc::EMSGSIZE | libc::EOPNOTSUPP))
}

/// The control data of a message: the length of each datagram.
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

/// Returns the datagrams from `first` on that may be sent together: all of one length except the last, which may be
/// shorter.
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

/// Sends one datagram for each element of `datagrams` to the same address with as few calls as possible; returns the
/// number that the kernel accepted. `together`: those of one length may be sent together.
///
/// # Errors
/// From the kernel, if the first message fails; it may consist of several datagrams.
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
        let taken = unsafe { calls::sendmmsg(fd, messages.as_mut_ptr(), count, flags) };
        match check(taken as libc::c_int) {
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
