//! Regions of a page: what stands between `<!-- results: KIND WORDS -->` and `<!-- end of results -->`, each on a line of its
//! own. Must never know what is written into them.

/// What a region asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region<'a> {
    /// The first word.
    pub kind: &'a str,
    /// The others.
    pub words: Vec<&'a str>,
}

const END: &str = "<!-- end of results -->";

fn opens(line: &str) -> Option<Region<'_>> {
    let inside = line.trim().strip_prefix("<!-- results:")?.strip_suffix("-->")?;
    let mut words = inside.split_whitespace();
    let kind = words.next().unwrap_or_default();
    Some(Region { kind, words: words.collect() })
}

/// The page with every region written anew.
///
/// # Errors
///
/// `LINE: ` and what is wrong: a region without an end, an end without a beginning, or what `write` refused.
pub fn replace(page: &str, mut write: impl FnMut(&Region<'_>) -> Result<String, String>) -> Result<String, String> {
    let mut out = String::with_capacity(page.len());
    let mut open: Option<usize> = None;
    for (index, line) in page.lines().enumerate() {
        let number = index + 1;
        if line.trim() == END {
            if open.take().is_none() {
                return Err(format!("{number}: a region ends that has not begun"));
            }
        } else if let Some(region) = opens(line) {
            if let Some(begun) = open {
                return Err(format!("{begun}: this region has no '{END}' before the next one"));
            }
            open = Some(number);
            out += line;
            out.push('\n');
            out += write(&region).map_err(|why| format!("{number}: {why}"))?.trim_end();
            out.push('\n');
            continue;
        } else if open.is_some() {
            continue;
        }
        out += line;
        out.push('\n');
    }
    match open {
        Some(begun) => Err(format!("{begun}: this region has no '{END}'")),
        None => Ok(out),
    }
}
