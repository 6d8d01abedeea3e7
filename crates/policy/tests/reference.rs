//! The pages of the reference manual agree with the tables. `BLESS=1` regenerates them.

use std::path::Path;
use weir_policy::catalogue;

#[test]
fn reference_pages_are_up_to_date() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference");
    let pages = [
        ("fetches.md", catalogue::fetches_page()),
        ("converters.md", catalogue::converters_page()),
        ("acls.md", catalogue::acls_page()),
        ("log-formats.md", catalogue::log_formats_page()),
    ];
    for (name, page) in pages {
        let path = folder.join(name);
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&path, &page).expect("the page is written");
        }
        let kept = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            kept == page,
            "docs/reference/{name} is out of date: BLESS=1 cargo test -p weir-policy --test reference"
        );
    }
}
