//! Versions of HAProxy and of OpenSSL, as conditions compare them.

/// `3.5-dev5`, `3.5.1`, `3.4-rc1`, `3.5-dev5-50872d-2`: three numbers, the stage of the last one, the number of commits
/// since. Missing parts count as 0, and unreadable parts are skipped, as in HAProxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    numbers: [u32; 3],
    stage: Stage,
    commits: u32,
}

/// Stages in the order of a release cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Development(u32),
    Preview(u32),
    Candidate(u32),
    Released,
}

impl Version {
    /// Parses a version; never fails: nonsense is version 0.
    pub fn parse(text: &str) -> Self {
        let mut parts = text.split('-');
        let mut numbers = [0; 3];
        for (number, part) in numbers.iter_mut().zip(parts.next().unwrap_or_default().split('.')) {
            *number = leading_number(part);
        }
        let mut parts = parts.peekable();
        let stage = parts.peek().and_then(|part| Stage::parse(part));
        if stage.is_some() {
            parts.next();
        }
        // `-50872d-2`: the commit's hash is ignored, the number of commits after it is used.
        let commits = parts.last().map_or(0, |part| part.parse().unwrap_or(0));
        Self { numbers, stage: stage.unwrap_or(Stage::Released), commits }
    }
}

impl Stage {
    fn parse(text: &str) -> Option<Self> {
        let number = |name| text.strip_prefix(name).map(leading_number);
        number("dev")
            .map(Self::Development)
            .or_else(|| number("pre").map(Self::Preview))
            .or_else(|| number("rc").map(Self::Candidate))
    }
}

/// Returns the number at the start of a text, 0 if there is none. A number that overflows saturates.
fn leading_number(text: &str) -> u32 {
    let digits = text.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
    if digits.is_empty() { 0 } else { digits.parse().unwrap_or(u32::MAX) }
}

/// `1.1.1`, `1.0.2u`, `3.0.0-beta1`: three numbers, a letter for a fix; alpha and beta precede the release.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct OpenSslVersion {
    numbers: [u32; 3],
    /// 0 for a development version, then alphas and betas, then the release.
    status: u32,
    letter: u8,
}

const RELEASED: u32 = u32::MAX;

impl OpenSslVersion {
    /// Parses a version; `None` if one of the three numbers is missing.
    pub fn parse(text: &str) -> Option<Self> {
        let (version, status) = match text.split_once('-') {
            None => (text, RELEASED),
            Some((version, status)) => (version, status_of(status)),
        };
        let mut parts = version.splitn(3, '.');
        let mut numbers = [0; 3];
        let mut rest = "";
        for number in &mut numbers {
            let part = parts.next()?;
            let digits = part.len() - part.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            *number = part.get(..digits)?.parse().ok()?;
            rest = &part[digits..];
        }
        let letter = rest.bytes().next().filter(u8::is_ascii_lowercase).unwrap_or(0);
        Some(Self { numbers, status, letter })
    }
}

fn status_of(text: &str) -> u32 {
    for (name, base) in [("alpha", 1000), ("beta", 2000), ("pre", 3000)] {
        if let Some(number) = text.strip_prefix(name) {
            return base + leading_number(number).min(999);
        }
    }
    if text.starts_with("dev") { 0 } else { RELEASED }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_haproxy() {
        let own = Version::parse("3.5-dev5");
        for older in [
            "",
            "foo",
            "2",
            "3",
            "3.4",
            "3.4.99",
            "3.4.0.1",
            "3.4-1",
            "3.5-dev",
            "3.5-dev0",
            "3.5-dev4",
            "3.5-dev4x",
            "3.5-dev4-99",
            "3.5-dev5",
            "3.5-dev5x",
            "3.5-dev05",
            "3.5-dev5-50872d",
            "3.5.0-dev5",
            "1-foo",
            "2.4-dev19",
        ] {
            assert!(own >= Version::parse(older), "{older}");
        }
        for newer in [
            "3.5",
            "3.5.0",
            "3.5.1",
            "3.5.0.0",
            "4",
            "3.6-dev0",
            "3.5-dev6",
            "3.5-dev10",
            "3.5-rc1",
            "3.5-pre1",
            "3.5-1",
            "3.5-foo",
            "3.5-dev5-3",
            "3.5-dev5-50872d-3",
            "99999999999.0",
        ] {
            assert!(own < Version::parse(newer), "{newer}");
        }
    }

    #[test]
    fn versions_of_openssl() {
        let parse = |text| OpenSslVersion::parse(text).unwrap();
        let ordered =
            ["1.0.2", "1.0.2a", "1.0.2u", "1.1.1", "1.1.1w", "3.0.0-dev", "3.0.0-alpha1", "3.0.0-beta2", "3.0.0"];
        for pair in ordered.windows(2) {
            assert!(parse(pair[0]) < parse(pair[1]), "{pair:?}");
        }
        for wrong in ["", "3", "3.0", "foo", "3.0.", "a.b.c", "99999999999.0.0"] {
            assert_eq!(OpenSslVersion::parse(wrong), None, "{wrong}");
        }
    }
}
