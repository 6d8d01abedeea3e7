//! Assignment of processors to the parts of a run. Must never bind anything.

use super::scenario::RoleProcessors;
use super::scenario::quantity::ProcessorChoice;
use base::ProcessorSet;

/// Processors of each role; an empty set means no binding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Places {
    pub proxy: ProcessorSet,
    pub origin: ProcessorSet,
    pub load: ProcessorSet,
}

/// Assigns processors to all roles, for a proxy with that number of workers.
#[must_use]
pub fn places(seats: &RoleProcessors, workers: u32, available: &ProcessorSet) -> Places {
    let first: ProcessorSet = available.iter().take(workers as usize).collect();
    let find = |seat: ProcessorChoice| match seat {
        ProcessorChoice::List(list) => available.intersection(&list),
        ProcessorChoice::Workers => first,
        ProcessorChoice::Rest => available.iter().filter(|number| !first.contains(*number)).collect(),
        ProcessorChoice::All => *available,
    };
    let or_all = |set: ProcessorSet| if set.is_empty() { *available } else { set };
    Places { proxy: or_all(find(seats.proxy)), origin: or_all(find(seats.origin)), load: or_all(find(seats.load)) }
}

/// Returns the processors of a list that the machine does not have.
#[must_use]
pub fn missing(seat: ProcessorChoice, available: &ProcessorSet) -> ProcessorSet {
    match seat {
        ProcessorChoice::List(list) => list.iter().filter(|number| !available.contains(*number)).collect(),
        _ => ProcessorSet::EMPTY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::scenario::quantity::processors;

    fn seat(text: &str) -> ProcessorChoice {
        match text {
            "workers" => ProcessorChoice::Workers,
            "rest" => ProcessorChoice::Rest,
            "all" => ProcessorChoice::All,
            list => ProcessorChoice::List(processors(list).unwrap()),
        }
    }

    #[test]
    fn everybody_finds_a_place_on_every_machine() {
        // Columns: available; proxy, origin, load; workers; assigned processors.
        let rows = [
            ("0-1", ["workers", "rest", "rest"], 1, ["0", "1", "1"]),
            ("0-1", ["workers", "rest", "rest"], 2, ["0-1", "0-1", "0-1"]),
            ("0", ["workers", "rest", "rest"], 4, ["0", "0", "0"]),
            ("4-11", ["workers", "rest", "all"], 2, ["4-5", "6-11", "4-11"]),
            ("0-7", ["0", "1", "2-3"], 1, ["0", "1", "2-3"]),
            ("0-1", ["0-3", "4", "1"], 1, ["0-1", "0-1", "1"]),
        ];
        for (available, [proxy, origin, load], workers, expected) in rows {
            let available = processors(available).unwrap();
            let seats = RoleProcessors { proxy: seat(proxy), origin: seat(origin), load: seat(load) };
            let found = places(&seats, workers, &available);
            assert_eq!([found.proxy, found.origin, found.load].map(|set| set.to_string()), expected, "{available}");
        }
    }

    #[test]
    fn missing_processors_are_told() {
        let available = processors("0-1").unwrap();
        assert_eq!(missing(seat("1-3"), &available).to_string(), "2-3");
        assert!(missing(ProcessorChoice::Workers, &available).is_empty());
    }
}
