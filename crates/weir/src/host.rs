//! What a configuration is told of the machine it is read on. Must never change the variables of the process.

/// The host's name as the kernel has it: the local peer where nobody says.
#[must_use]
pub fn name() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname")
        .map_or_else(|_| "localhost".to_owned(), |name| name.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_host_has_a_name_of_one_line() {
        assert!(!name().is_empty() && !name().contains('\n'));
    }
}
