//! Messages that carry descriptors (`SCM_RIGHTS`, unix(7)).

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use super::{attempt, check};

/// Maximum number of descriptors in one message: the kernel's own limit is 253.
pub(crate) const MOST_DESCRIPTORS: usize = 252;

/// Size of the ancillary data for them, in 64-bit words, rounded up.
const WORDS: usize = (MOST_DESCRIPTORS * mem::size_of::<RawFd>() + 64) / mem::size_of::<u64>();

/// Creates a connected pair of UNIX sockets.
pub(crate) fn pair(kind: i32) -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    let kind = kind | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: `ends` is valid for the two numbers that the kernel writes.
    check(unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()) })?;
    // SAFETY: both descriptors are new and have no other owner.
    Ok(unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) })
}

fn message(slice: &mut libc::iovec, control: &mut [u64; WORDS], length: usize) -> libc::msghdr {
    // SAFETY: all bytes zero is a valid value of this plain structure.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    message.msg_iov = slice;
    message.msg_iovlen = 1;
    if length > 0 {
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = length as _;
    }
    message
}

/// Sends bytes, and descriptors with the first of them; `None` if the call would have waited.
pub(crate) fn send(fd: RawFd, bytes: &[u8], descriptors: &[BorrowedFd<'_>], flags: i32) -> io::Result<Option<usize>> {
    if descriptors.len() > MOST_DESCRIPTORS || (bytes.is_empty() && !descriptors.is_empty()) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut control = [0_u64; WORDS];
    let size = mem::size_of_val(descriptors) as libc::c_uint;
    // SAFETY: the macro's function only computes.
    let space = if descriptors.is_empty() { 0 } else { unsafe { libc::CMSG_SPACE(size) as usize } };
    let mut slice = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let message = message(&mut slice, &mut control, space);
    if !descriptors.is_empty() {
        let numbers: Vec<RawFd> = descriptors.iter().map(AsRawFd::as_raw_fd).collect();
        // SAFETY: `control` has space for one header and `size` bytes after it (`CMSG_SPACE`, bounded above), and is
        // aligned for both.
        unsafe {
            let header = libc::CMSG_FIRSTHDR(&message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN(size) as _;
            std::ptr::copy_nonoverlapping(numbers.as_ptr().cast(), libc::CMSG_DATA(header), size as usize);
        }
    }
    // SAFETY: the message points to `bytes` and `control`, which are valid for the call; the kernel only reads them.
    attempt(|| unsafe { libc::sendmsg(fd, &message, libc::MSG_NOSIGNAL | flags) })
}

/// Receives bytes, 0 at the end, and appends the descriptors that came with them; `None` if the call would have waited.
/// Descriptors are closed on exec.
///
/// Fails with `InvalidData` if there were more descriptors than a message may carry; those that fitted are appended.
pub(crate) fn receive(fd: RawFd, place: &mut [u8], into: &mut Vec<OwnedFd>) -> io::Result<Option<usize>> {
    let mut control = [0_u64; WORDS];
    let room = mem::size_of_val(&control);
    let mut slice = libc::iovec { iov_base: place.as_mut_ptr().cast(), iov_len: place.len() };
    let mut message = message(&mut slice, &mut control, room);
    // SAFETY: the message points to `place` and `control`, whose lengths it contains and which are not used elsewhere
    // during the call.
    let received = attempt(|| unsafe { libc::recvmsg(fd, &mut message, libc::MSG_CMSG_CLOEXEC) })?;
    if received.is_none() {
        return Ok(None);
    }
    // SAFETY: the kernel has written `msg_controllen` bytes of well-formed headers into `control`; the macros' functions
    // stay within them.
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(&message);
        while !header.is_null() {
            if (*header).cmsg_level == libc::SOL_SOCKET && (*header).cmsg_type == libc::SCM_RIGHTS {
                let bytes = (*header).cmsg_len as usize - libc::CMSG_LEN(0) as usize;
                let data = libc::CMSG_DATA(header).cast::<RawFd>();
                for index in 0..bytes / mem::size_of::<RawFd>() {
                    // The kernel has created these descriptors for this process; they have no other owner.
                    into.push(OwnedFd::from_raw_fd(data.add(index).read_unaligned()));
                }
            }
            header = libc::CMSG_NXTHDR(&message, header);
        }
    }
    if message.msg_flags & libc::MSG_CTRUNC != 0 {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "more descriptors than a message may carry"));
    }
    Ok(received)
}
