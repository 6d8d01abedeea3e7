//! Any bytes as a file of shared counters: no panic, accepted records round-trip, and exchanged counters add up.

use live::counters::shared::{Place, RECORD, Record, VALUES, Values, exchange, header_fault};

/// Runs on one input; panics if a property is violated.
pub fn run(data: &[u8]) {
    let (header, records) = data.split_at(data.len().min(RECORD));
    let _ = header_fault(header);
    for bytes in records.chunks(RECORD).chain([data]) {
        let Place::Taken(mut record) = Record::decode(bytes) else { continue };
        assert_eq!(Record::decode(&record.encode()), Place::Taken(record.clone()));
        let (mut given, own): (Values, Values) = (record.values, [7; VALUES]);
        let others = exchange(&mut record.values, &mut given, own);
        // For any file, the process's own counters are part of the sum.
        assert_eq!(record.values[0], others[0].wrapping_add(own[0]));
    }
}
