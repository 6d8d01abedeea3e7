//! The calls of every request, as [`crate::SocketCalls`] says. Arguments and results are those of the C library's functions.
//!
//! Each is unsafe as its function in the C library is: pointers have to be valid for the call.

use std::os::fd::RawFd;

use crate::calls::are_named;

/// No address.
const NOWHERE: *mut libc::c_void = std::ptr::null_mut();

/// `recv`
///
/// # Safety
/// As for the function: its pointers have to be valid for the call.
#[inline]
pub(super) unsafe fn recv(fd: RawFd, place: *mut libc::c_void, length: usize, flags: i32) -> libc::ssize_t {
    if are_named() {
        // SAFETY: by the caller.
        return unsafe { named::recv(fd, place, length, flags) };
    }
    // SAFETY: by the caller.
    unsafe { libc::syscall(libc::SYS_recvfrom, fd, place, length, flags, NOWHERE, NOWHERE) as libc::ssize_t }
}

/// `recvfrom`
///
/// # Safety
/// As for the function: its pointers have to be valid for the call.
#[inline]
pub(super) unsafe fn recvfrom(
    fd: RawFd,
    place: *mut libc::c_void,
    length: usize,
    flags: i32,
    name: *mut libc::sockaddr,
    name_length: *mut libc::socklen_t,
) -> libc::ssize_t {
    if are_named() {
        // SAFETY: by the caller.
        return unsafe { named::recvfrom(fd, place, length, flags, name, name_length) };
    }
    // SAFETY: by the caller.
    unsafe { libc::syscall(libc::SYS_recvfrom, fd, place, length, flags, name, name_length) as libc::ssize_t }
}

/// `send`
///
/// # Safety
/// As for the function: its pointers have to be valid for the call.
#[inline]
pub(super) unsafe fn send(fd: RawFd, bytes: *const libc::c_void, length: usize, flags: i32) -> libc::ssize_t {
    if are_named() {
        // SAFETY: by the caller.
        return unsafe { named::send(fd, bytes, length, flags) };
    }
    // SAFETY: by the caller.
    unsafe { libc::syscall(libc::SYS_sendto, fd, bytes, length, flags, NOWHERE, 0_usize) as libc::ssize_t }
}

/// `sendto`
///
/// # Safety
/// As for the function: its pointers have to be valid for the call.
#[inline]
pub(super) unsafe fn sendto(
    fd: RawFd,
    bytes: *const libc::c_void,
    length: usize,
    flags: i32,
    name: *const libc::sockaddr,
    name_length: libc::socklen_t,
) -> libc::ssize_t {
    if are_named() {
        // SAFETY: by the caller.
        return unsafe { named::sendto(fd, bytes, length, flags, name, name_length) };
    }
    // SAFETY: by the caller.
    unsafe { libc::syscall(libc::SYS_sendto, fd, bytes, length, flags, name, name_length) as libc::ssize_t }
}

/// `sendmsg`
///
/// # Safety
/// As for the function: its pointers have to be valid for the call.
#[inline]
pub(super) unsafe fn sendmsg(fd: RawFd, message: *const libc::msghdr, flags: i32) -> libc::ssize_t {
    if are_named() {
        // SAFETY: by the caller.
        return unsafe { named::sendmsg(fd, message, flags) };
    }
    // SAFETY: by the caller.
    unsafe { libc::syscall(libc::SYS_sendmsg, fd, message, flags) as libc::ssize_t }
}

/// `sendmmsg`. Named, each message is sent by `sendmsg`: preloaded libraries replace that function, and not all of them this one.
///
/// # Safety
/// As for the function: its pointers have to be valid for the call.
#[inline]
pub(super) unsafe fn sendmmsg(fd: RawFd, messages: *mut libc::mmsghdr, count: usize, flags: i32) -> libc::ssize_t {
    if are_named() {
        // SAFETY: by the caller.
        return unsafe { named::sendmmsg(fd, messages, count, flags) };
    }
    // SAFETY: by the caller.
    unsafe { libc::syscall(libc::SYS_sendmmsg, fd, messages, count as libc::c_uint, flags) as libc::ssize_t }
}

/// `recvmmsg` without a timeout. Named, each message is received by `recvmsg`, as above; `flags` have to forbid waiting.
///
/// # Safety
/// As for the function: its pointers have to be valid for the call.
#[inline]
pub(super) unsafe fn recvmmsg(fd: RawFd, messages: *mut libc::mmsghdr, count: usize, flags: i32) -> libc::ssize_t {
    if are_named() {
        // SAFETY: by the caller.
        return unsafe { named::recvmmsg(fd, messages, count, flags) };
    }
    let forever = std::ptr::null::<libc::timespec>();
    // SAFETY: by the caller.
    unsafe { libc::syscall(libc::SYS_recvmmsg, fd, messages, count as libc::c_uint, flags, forever) as libc::ssize_t }
}

/// `accept4`
///
/// # Safety
/// As for the function: its pointers have to be valid for the call.
#[inline]
pub(super) unsafe fn accept4(
    fd: RawFd,
    address: *mut libc::sockaddr,
    length: *mut libc::socklen_t,
    flags: i32,
) -> libc::c_int {
    if are_named() {
        // SAFETY: by the caller.
        return unsafe { named::accept4(fd, address, length, flags) };
    }
    // SAFETY: by the caller.
    unsafe { libc::syscall(libc::SYS_accept4, fd, address, length, flags) as libc::c_int }
}

/// `epoll_wait`
///
/// # Safety
/// As for the function: its pointers have to be valid for the call.
#[inline]
pub(super) unsafe fn epoll_wait(
    epoll: RawFd,
    events: *mut libc::epoll_event,
    most: libc::c_int,
    timeout: libc::c_int,
) -> libc::c_int {
    if are_named() {
        // SAFETY: by the caller.
        return unsafe { named::epoll_wait(epoll, events, most, timeout) };
    }
    let no_signals = std::ptr::null::<libc::sigset_t>();
    // Not every architecture has the call without a set of signals.
    // SAFETY: by the caller; without a set of signals none is changed.
    unsafe { libc::syscall(libc::SYS_epoll_pwait, epoll, events, most, timeout, no_signals, 8_usize) as libc::c_int }
}

/// `close`
///
/// # Safety
/// As for the function: its pointers have to be valid for the call.
#[inline]
pub(super) unsafe fn close(fd: RawFd) {
    if are_named() {
        // SAFETY: by the caller.
        unsafe { named::close(fd) };
    } else {
        // SAFETY: by the caller.
        unsafe { libc::syscall(libc::SYS_close, fd) };
    }
}

/// The functions of the C library, apart from the code that runs without them.
mod named {
    use std::os::fd::RawFd;

    /// # Safety
    /// As above.
    #[cold]
    pub(super) unsafe fn recv(fd: RawFd, place: *mut libc::c_void, length: usize, flags: i32) -> libc::ssize_t {
        // SAFETY: by the caller.
        unsafe { libc::recv(fd, place, length, flags) }
    }

    /// # Safety
    /// As above.
    #[cold]
    pub(super) unsafe fn send(fd: RawFd, bytes: *const libc::c_void, length: usize, flags: i32) -> libc::ssize_t {
        // SAFETY: by the caller.
        unsafe { libc::send(fd, bytes, length, flags) }
    }

    /// # Safety
    /// As above.
    #[cold]
    pub(super) unsafe fn recvfrom(
        fd: RawFd,
        place: *mut libc::c_void,
        length: usize,
        flags: i32,
        name: *mut libc::sockaddr,
        name_length: *mut libc::socklen_t,
    ) -> libc::ssize_t {
        // SAFETY: by the caller.
        unsafe { libc::recvfrom(fd, place, length, flags, name, name_length) }
    }

    /// # Safety
    /// As above.
    #[cold]
    pub(super) unsafe fn sendto(
        fd: RawFd,
        bytes: *const libc::c_void,
        length: usize,
        flags: i32,
        name: *const libc::sockaddr,
        name_length: libc::socklen_t,
    ) -> libc::ssize_t {
        // SAFETY: by the caller.
        unsafe { libc::sendto(fd, bytes, length, flags, name, name_length) }
    }

    /// # Safety
    /// As above.
    #[cold]
    pub(super) unsafe fn sendmsg(fd: RawFd, message: *const libc::msghdr, flags: i32) -> libc::ssize_t {
        // SAFETY: by the caller.
        unsafe { libc::sendmsg(fd, message, flags) }
    }

    /// # Safety
    /// As above.
    #[cold]
    pub(super) unsafe fn sendmmsg(fd: RawFd, messages: *mut libc::mmsghdr, count: usize, flags: i32) -> libc::ssize_t {
        // SAFETY: by the caller, who passes `count` messages.
        unsafe { each(messages, count, |message| libc::sendmsg(fd, &raw const *message, flags)) }
    }

    /// # Safety
    /// As above.
    #[cold]
    pub(super) unsafe fn recvmmsg(fd: RawFd, messages: *mut libc::mmsghdr, count: usize, flags: i32) -> libc::ssize_t {
        // SAFETY: as above.
        unsafe { each(messages, count, |message| libc::recvmsg(fd, message, flags)) }
    }

    /// Calls for each message until one fails. Returns the number of those before it; -1 if there is none.
    ///
    /// # Safety
    /// There have to be `count` messages.
    unsafe fn each(
        messages: *mut libc::mmsghdr,
        count: usize,
        mut call: impl FnMut(*mut libc::msghdr) -> libc::ssize_t,
    ) -> libc::ssize_t {
        for index in 0..count {
            // SAFETY: by the caller: there are `count` messages, which are used nowhere else.
            let message = unsafe { &mut *messages.add(index) };
            let moved = call(&raw mut message.msg_hdr);
            if moved < 0 {
                return if index == 0 { -1 } else { index as libc::ssize_t };
            }
            message.msg_len = moved as libc::c_uint;
        }
        count as libc::ssize_t
    }

    /// # Safety
    /// As above.
    #[cold]
    pub(super) unsafe fn accept4(
        fd: RawFd,
        address: *mut libc::sockaddr,
        length: *mut libc::socklen_t,
        flags: i32,
    ) -> libc::c_int {
        // SAFETY: by the caller.
        unsafe { libc::accept4(fd, address, length, flags) }
    }

    /// # Safety
    /// As above.
    #[cold]
    pub(super) unsafe fn epoll_wait(
        epoll: RawFd,
        events: *mut libc::epoll_event,
        most: libc::c_int,
        timeout: libc::c_int,
    ) -> libc::c_int {
        // SAFETY: by the caller.
        unsafe { libc::epoll_wait(epoll, events, most, timeout) }
    }

    /// # Safety
    /// As above.
    #[cold]
    pub(super) unsafe fn close(fd: RawFd) {
        // SAFETY: by the caller.
        unsafe { libc::close(fd) };
    }
}
