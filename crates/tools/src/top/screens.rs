//! Whole screens as text, in the sizes that are usual. `once.txt` is the table of `--once`.

use super::app::tests::{app_after, drawn, press};
use super::sample::tests::LATENCY;

/// Asserts that a screen is equal to the text of a file, whose last line ends with a line end.
fn assert_screen(drawn: &str, file: &str) {
    assert_eq!(drawn, file.trim_end_matches('\n'), "\n{drawn}\n");
}

#[test]
fn proxies_on_a_usual_terminal() {
    let mut app = app_after("");
    assert_screen(drawn(&mut app, 80, 24).trim_end(), include_str!("screens/proxies-80x24.txt"));
}

#[test]
fn details_of_a_server_on_a_usual_terminal() {
    let mut app = app_after("");
    press(&mut app, "\t\n");
    assert_screen(drawn(&mut app, 80, 24).trim_end(), include_str!("screens/server-80x24.txt"));
}

#[test]
fn all_rows_with_percentiles_on_a_wide_terminal() {
    let mut app = app_after(LATENCY);
    press(&mut app, "\t\t↓↓↓\n");
    assert_screen(drawn(&mut app, 200, 40).trim_end(), include_str!("screens/all-200x40.txt"));
}

#[test]
fn a_tiny_terminal_is_no_fault() {
    let mut app = app_after("");
    press(&mut app, "\n");
    for (width, height) in [(1, 1), (3, 2), (10, 5), (20, 8), (40, 12)] {
        drawn(&mut app, width, height);
        press(&mut app, "?");
        drawn(&mut app, width, height);
        press(&mut app, "x");
    }
    let text = drawn(&mut app, 40, 12);
    assert!(text.contains("NAME") && text.contains("STATUS") && !text.contains("OUT/S"), "{text}");
}
