//! Options of sockets that both connecting and listening ones have. Must never connect one.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use crate::sys;

/// Converts a number to the `int` of socket options, saturating.
pub(super) fn saturate<T: TryInto<i32>>(value: T) -> i32 {
    value.try_into().unwrap_or(i32::MAX)
}

pub(super) fn bind_to_interface(fd: &OwnedFd, interface: &str) -> io::Result<()> {
    let name = CString::new(interface).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    let name = name.as_bytes_with_nul();
    sys::socket::set_option_bytes(fd.as_raw_fd(), libc::SOL_SOCKET, libc::SO_BINDTODEVICE, name)
}

pub(super) fn set_transparent(fd: &OwnedFd, v6: bool) -> io::Result<()> {
    let (level, name) =
        if v6 { (libc::IPPROTO_IPV6, libc::IPV6_TRANSPARENT) } else { (libc::IPPROTO_IP, libc::IP_TRANSPARENT) };
    sys::socket::set_option(fd.as_raw_fd(), level, name, 1)
}
