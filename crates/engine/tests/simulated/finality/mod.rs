//! Tests whether rules find a fetch, and whether rules on bytes wait for it, compared with a table of HAProxy's
//! behaviour (`bench/finality.py`): rules wait for a fetch whose value may still arrive, and do not wait for one that
//! is finally absent.

mod known;
mod scenes;

use std::collections::HashMap;

use testkit::sleep;

use crate::world::*;
use known::is_known;
use scenes::{COMMON, Proxies, Scene, serve};

const TABLE: &str = include_str!("haproxy.tsv");

/// A fetch, and a letter for each scene: `w` if a rule waits for it, `d` if not; upper case if it is found.
struct Row {
    fetch: &'static str,
    cells: &'static [u8],
}

fn table() -> (Vec<&'static str>, Vec<Row>) {
    let mut lines = TABLE.lines();
    let names = lines.next().and_then(|line| line.split_once('\t')).unwrap().1.split(' ').collect();
    let row = |line: &'static str| line.split_once('\t').map(|(fetch, cells)| Row { fetch, cells: cells.as_bytes() });
    (names, lines.filter_map(row).collect())
}

/// The configuration with the supported fetches, and the indexes of these.
fn known(kind: Proxies, rows: &[(usize, &Row)]) -> (String, Vec<usize>) {
    let mut left: Vec<(usize, &str)> = rows.iter().map(|(place, row)| (*place, row.fetch)).collect();
    loop {
        let mut text = COMMON.to_owned();
        let mut begins = Vec::new();
        for (place, fetch) in &left {
            begins.push(text.lines().count());
            text += &kind.section(*place, fetch);
        }
        let refused = config(&text).refused_lines();
        if refused.is_empty() {
            return (text, left.iter().map(|(place, _)| *place).collect());
        }
        let before = left.len();
        let is_refused = |at: usize| {
            let end = begins.get(at + 1).copied().unwrap_or(usize::MAX);
            refused.iter().any(|line| (begins[at]..end).contains(line))
        };
        let kept = (0..before).filter(|at| !is_refused(*at)).map(|at| left[at]).collect();
        left = kept;
        assert!(left.len() < before, "{refused:?}");
    }
}

/// The indexes of fetches and their letters, from the lines of the log.
fn letters(lines: &[String]) -> HashMap<usize, u8> {
    let letter = |line: &String| {
        let words: Vec<&str> = line[line.find("R f")? + 2..].split(' ').collect();
        let [frontend, took, shaken, found] = words[..] else { return None };
        let millis = |text: &str| text.parse::<i64>().ok();
        let waits = millis(took)? - millis(shaken)?.max(0) > 500;
        let letter = if waits { b'w' } else { b'd' };
        let place = frontend.trim_start_matches('f').trim_end_matches('~').parse().ok()?;
        Some((place, if found == "1" { letter.to_ascii_uppercase() } else { letter }))
    };
    lines.iter().filter_map(letter).collect()
}

#[test]
fn rules_find_and_wait_for_fetches_as_recorded() {
    let (names, rows) = table();
    let scenes: Vec<Scene> = names.iter().map(|name| Scene::named(name)).collect();
    let differs = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
    for kind in Proxies::ALL {
        let columns: Vec<usize> = (0..scenes.len()).filter(|column| scenes[*column].proxies == kind).collect();
        assert!(!columns.is_empty(), "{kind:?}");
        let asked: Vec<(usize, &Row)> =
            rows.iter().enumerate().filter(|(_, row)| row.cells[columns[0]].is_ascii_alphabetic()).collect();
        let (text, places) = known(kind, &asked);
        assert!(places.len() > 250, "{kind:?}: {}", places.len());
        let scenes: Vec<(usize, Scene)> = columns.into_iter().map(|column| (column, scenes[column].clone())).collect();
        let (rows, differs) = (table().1, std::rc::Rc::clone(&differs));
        let rows = std::rc::Rc::new(rows);
        config(&text).workers(&[1]).seeds(0..1).run(move |world| {
            let (places, scenes, differs) = (places.clone(), scenes.clone(), std::rc::Rc::clone(&differs));
            let rows = std::rc::Rc::clone(&rows);
            async move {
                serve(&world.scope);
                for (column, scene) in scenes {
                    for place in places.iter().copied() {
                        let scene = scene.clone();
                        world.scope.spawn(async move { scene.play(place).await });
                    }
                    sleep(2_500).await;
                    let found = letters(&world.take_log().await);
                    for place in &places {
                        let letter = found.get(place).copied().unwrap_or(b'?');
                        let row = &rows[*place];
                        let recorded = row.cells[column];
                        if letter != recorded
                            && !is_known(scene.name, row.fetch, char::from(recorded), char::from(letter))
                        {
                            let (recorded, letter) = (char::from(recorded), char::from(letter));
                            differs.borrow_mut().push(format!("{}\t{}\t{recorded}\t{letter}", scene.name, row.fetch));
                        }
                    }
                }
                world.forget_log();
            }
        });
    }
    let differs = differs.take();
    assert!(differs.is_empty(), "{} differ:\n{}", differs.len(), differs.join("\n"));
}
