//! Regions of a page: the lines between `<!-- results: KIND WORDS -->` and `<!-- end of results -->`, each on a line of
//! its own. Must never depend on their content.

/// Header of a region.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region<'a> {
    pub kind: &'a str,
    /// The other words.
    pub words: Vec<&'a str>,
}

const END: &str = "<!-- end of results -->";

fn opens(line: &str) -> Option<Region<'_>> {
    let inside = line.trim().strip_prefix("<!-- results:")?.strip_suffix("-->")?;
    let mut words = inside.split_whitespace();
    let kind = words.next().unwrap_or_default();
    Some(Region { kind, words: words.collect() })
}

/// Returns the page with regenerated regions. `write` receives a region, the number of its first line and its content;
/// `None` keeps the content.
///
/// # Errors
///
/// `LINE: ` and the error: a region without an end, an end without a beginning, or an error of `write`.
pub fn replace(
    page: &str,
    mut write: impl FnMut(&Region<'_>, usize, &str) -> Result<Option<String>, String>,
) -> Result<String, String> {
    let mut out = String::with_capacity(page.len());
    // The open region, the number of its first line, and its content.
    let mut open: Option<(Region<'_>, usize, String)> = None;
    for (index, line) in page.lines().enumerate() {
        let number = index + 1;
        if line.trim() == END {
            let Some((region, begun, before)) = open.take() else {
                return Err(format!("{number}: a region ends that has not begun"));
            };
            match write(&region, begun, &before).map_err(|why| format!("{begun}: {why}"))? {
                Some(text) => {
                    out += text.trim_end();
                    out.push('\n');
                }
                None => out += &before,
            }
        } else if let Some((_, begun, before)) = &mut open {
            if opens(line).is_some() {
                return Err(format!("{begun}: this region has no '{END}' before the next one"));
            }
            before.push_str(line);
            before.push('\n');
            continue;
        } else if let Some(region) = opens(line) {
            open = Some((region, number, String::new()));
        }
        out += line;
        out.push('\n');
    }
    match open {
        Some((_, begun, _)) => Err(format!("{begun}: this region has no '{END}'")),
        None => Ok(out),
    }
}
