//! Explicit congestion notification. Must never interpret the other bits of the byte.

/// The ECN bits of an IP header that are not zero (RFC 3168, section 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Ecn {
    /// ECT(1): the sender supports ECN.
    Ect1 = 0b01,
    /// ECT(0): the sender supports ECN.
    Ect0 = 0b10,
    /// CE: a router on the path is congested.
    Ce = 0b11,
}

impl Ecn {
    /// Returns the mark for the lower two bits; `None`: the sender does not support ECN.
    pub fn from_bits(bits: u8) -> Option<Ecn> {
        match bits & 0b11 {
            0b01 => Some(Ecn::Ect1),
            0b10 => Some(Ecn::Ect0),
            0b11 => Some(Ecn::Ce),
            _ => None,
        }
    }

    /// Returns the two bits.
    pub fn bits(self) -> u8 {
        self as u8
    }
}
