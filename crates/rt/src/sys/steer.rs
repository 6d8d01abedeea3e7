//! Steers the datagrams of QUIC to the sockets of an address: a BPF program of the kernel, and the same choice in Rust.
//!
//! Nothing here may depend on more of a packet than RFC 8999 promises of every version.

use std::io;
use std::os::fd::RawFd;

use super::socket::set_option;

/// Bit of the first byte: a long header follows (RFC 8999, section 5).
const LONG_HEADER: u32 = 0x80;
/// Offset of the destination connection ID's length in a long header: after the first byte and the version.
const LENGTH_AT: u32 = 5;
/// Offset of the destination connection ID in a long header.
const LONG_ID_AT: u32 = 6;
/// Offset of the destination connection ID in a short header: after the first byte.
const SHORT_ID_AT: u32 = 1;

/// Maximum number of sockets: a byte selects one.
pub(crate) const MOST_SOCKETS: usize = 256;

const LOAD_BYTE: u16 = (libc::BPF_LD | libc::BPF_B | libc::BPF_ABS) as u16;
const IF_ANY_BIT: u16 = (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K) as u16;
const IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const SKIP: u16 = (libc::BPF_JMP | libc::BPF_JA) as u16;
const MODULO: u16 = (libc::BPF_ALU | libc::BPF_MOD | libc::BPF_K) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_A) as u16;

const fn step(code: u16, value: u32, then: u8, otherwise: u8) -> libc::sock_filter {
    libc::sock_filter { code, jt: then, jf: otherwise, k: value }
}

/// Returns the program for a number of sockets. It sees the payload of a datagram; a load past the end of that ends it
/// with 0. Jumps are relative to the next step.
fn program(count: u32) -> [libc::sock_filter; 9] {
    [
        step(LOAD_BYTE, 0, 0, 0),
        step(IF_ANY_BIT, LONG_HEADER, 0, 4),
        step(LOAD_BYTE, LENGTH_AT, 0, 0),
        step(IF_EQUAL, 0, 4, 0),
        step(LOAD_BYTE, LONG_ID_AT, 0, 0),
        step(SKIP, 1, 0, 0),
        step(LOAD_BYTE, SHORT_ID_AT, 0, 0),
        step(MODULO, count, 0, 0),
        step(RETURN, 0, 0, 0),
    ]
}

/// Attaches the program to the sockets that share the address of `fd`, which are `count`.
///
/// # Errors
/// `InvalidInput`: none, or more than a byte can select. From the kernel: it has no such programs, or the socket does not
/// share its address.
pub(crate) fn attach(fd: RawFd, count: usize) -> io::Result<()> {
    if !(1..=MOST_SOCKETS).contains(&count) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut steps = program(count as u32);
    let program = libc::sock_fprog { len: steps.len() as libc::c_ushort, filter: steps.as_mut_ptr() };
    set_option(fd, libc::SOL_SOCKET, libc::SO_ATTACH_REUSEPORT_CBPF, program)
}

/// Returns the index of the socket that the program selects for a datagram; 0 if it is too short or has no destination
/// connection ID.
pub(crate) fn index(datagram: &[u8], count: usize) -> usize {
    let byte = |at: u32| datagram.get(at as usize).copied().map_or(0, usize::from);
    let is_long = byte(0) & LONG_HEADER as usize != 0;
    let id = match is_long {
        true if byte(LENGTH_AT) == 0 => 0,
        true => byte(LONG_ID_AT),
        false => byte(SHORT_ID_AT),
    };
    id.checked_rem(count).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the program as the kernel does.
    fn run(datagram: &[u8], count: u32) -> Option<u32> {
        let (steps, mut at, mut result) = (program(count), 0, 0);
        loop {
            let libc::sock_filter { code, jt, jf, k } = *steps.get(at)?;
            at += 1;
            match code {
                LOAD_BYTE => match datagram.get(k as usize) {
                    Some(byte) => result = u32::from(*byte),
                    None => return Some(0),
                },
                IF_ANY_BIT => at += usize::from(if result & k != 0 { jt } else { jf }),
                IF_EQUAL => at += usize::from(if result == k { jt } else { jf }),
                SKIP => at += k as usize,
                MODULO => result %= k,
                RETURN => return Some(result),
                _ => return None,
            }
        }
    }

    #[test]
    fn the_program_and_the_function_agree() {
        let mut datagrams = vec![vec![]];
        for first in [0x40, 0x7f, 0x80, 0xc3, 0xff] {
            for length in 1..10 {
                for id in [0, 1, 7, 200, 255] {
                    for id_length in [0, 1, 8, 20] {
                        let long = first & 0x80 != 0;
                        let mut datagram = vec![first, id, 0, 0, 1, id_length, id, 9, 9, 9];
                        datagram[1] = if long { 0 } else { id };
                        datagram.truncate(length);
                        datagrams.push(datagram);
                    }
                }
            }
        }
        for datagram in &datagrams {
            for count in [1, 2, 3, 64, 256] {
                assert_eq!(run(datagram, count as u32), Some(index(datagram, count) as u32), "{datagram:?} {count}");
            }
        }
    }

    #[test]
    fn the_first_byte_of_the_destination_selects() {
        let short = [0x41, 9, 1, 2, 3, 4, 5, 6, 7, 0xaa];
        let long = [0xc0, 0, 0, 0, 1, 8, 9, 1, 2, 3, 4, 5, 6, 7, 0];
        assert_eq!([index(&short, 4), index(&long, 4)], [1, 1]);
        assert_eq!([index(&short, 10), index(&long, 10)], [9, 9]);
        let without_id = [0xc0, 0, 0, 0, 1, 0, 8, 1];
        assert_eq!([index(&without_id, 4), index(&[], 4), index(&short, 0)], [0, 0, 0]);
    }

    #[test]
    fn a_number_that_a_byte_cannot_select_is_refused() {
        for count in [0, 257] {
            assert_eq!(attach(-1, count).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        }
    }
}
