//! What decoders return, and what they cost at most.
