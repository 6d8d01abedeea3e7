//! The program `weir-gateway`.

fn main() {}
