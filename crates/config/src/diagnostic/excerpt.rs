//! A source line with a caret run under a part of it, limited to the width of a terminal. Must never pass
//! a control character of the line to the terminal.

use crate::span::Span;

/// Maximum number of columns of a source line that are shown, not counting a margin of two.
const WIDTH: usize = 78;
/// Columns in front of the word if the line is too long to be shown from its start.
const BEFORE: usize = 30;
const CUT: &str = "...";

/// One character of the line as it is shown.
struct Cell {
    /// Offset of its first byte in the line.
    at: usize,
    shown: char,
    width: usize,
}

/// Writes the line without its indentation, and the carets.
pub fn write(line: &[u8], span: Span, out: &mut String) {
    let cells = cells(line);
    let Some(first) = cells.iter().position(|cell| cell.shown != ' ') else { return };
    let last = cells.iter().rposition(|cell| cell.shown != ' ').unwrap_or(first);
    let start = index_of(&cells, span.start).max(first);
    let end = index_of(&cells, span.end).clamp(start + 1, (last + 1).max(start + 1));
    let (from, to) = window(&cells, first, last + 1, start);

    out.push_str("  ");
    let mut column = 0;
    if from > first {
        out.push_str(CUT);
        column = CUT.len();
    }
    column += cells[from..start.clamp(from, cells.len())].iter().map(|cell| cell.width).sum::<usize>();
    out.extend(cells[from..to].iter().map(|cell| cell.shown));
    if to <= last {
        out.push_str(CUT);
    }
    let under = cells.get(start..end.min(to)).unwrap_or_default().iter().map(|cell| cell.width).sum::<usize>();
    out.push_str("\n  ");
    out.extend(std::iter::repeat_n(' ', column));
    out.extend(std::iter::repeat_n('^', under.max(1)));
    out.push('\n');
}

/// Returns the range of cells to show: all of them if they fit, else those around `start`.
fn window(cells: &[Cell], first: usize, behind: usize, start: usize) -> (usize, usize) {
    let width = |from: usize, to: usize| cells[from..to].iter().map(|cell| cell.width).sum::<usize>();
    if width(first, behind) <= WIDTH {
        return (first, behind);
    }
    let mut room = WIDTH - CUT.len();
    let mut from = first;
    let start = start.min(behind);
    if width(first, start) > WIDTH / 2 {
        room -= CUT.len();
        from = start;
        let mut before = 0;
        while from > first && before + cells[from - 1].width <= BEFORE {
            from -= 1;
            before += cells[from].width;
        }
    }
    let mut to = from;
    while to < behind && cells[to].width <= room {
        room -= cells[to].width;
        to += 1;
    }
    (from, to)
}

/// Returns the cell that contains a byte, or the index after the last cell if there is none.
fn index_of(cells: &[Cell], offset: u32) -> usize {
    let offset = offset as usize;
    cells.partition_point(|cell| cell.at < offset)
}

/// Converts a line to cells. A tab is one blank; every byte that cannot be shown is one `?`, as in HAProxy.
fn cells(line: &[u8]) -> Vec<Cell> {
    let mut cells = Vec::with_capacity(line.len());
    let mut at = 0;
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    for chunk in line.utf8_chunks() {
        for character in chunk.valid().chars() {
            let shown = match character {
                '\t' => ' ',
                safe if is_safe(safe) => safe,
                _ => '?',
            };
            cells.push(Cell { at, shown, width: width(shown) });
            at += character.len_utf8();
        }
        for _ in chunk.invalid() {
            cells.push(Cell { at, shown: '?', width: 1 });
            at += 1;
        }
    }
    cells
}

/// Whether a terminal may receive the character: no control character, and none that changes the direction of writing
/// or is invisible.
pub fn is_safe(character: char) -> bool {
    let hidden = matches!(u32::from(character),
        0xAD | 0x61C | 0x180E | 0x200B..=0x200F | 0x2028..=0x202E | 0x2060..=0x206F | 0xFEFF | 0xFFF9..=0xFFFB
        | 0xE0000..=0xE007F);
    !character.is_control() && !hidden
}

/// Returns the number of columns of a character in a terminal. Covers common scripts, not all of Unicode.
fn width(character: char) -> usize {
    match u32::from(character) {
        0x300..=0x36F
        | 0x483..=0x489
        | 0x591..=0x5BD
        | 0x610..=0x61A
        | 0x64B..=0x65F
        | 0x1AB0..=0x1AFF
        | 0x1DC0..=0x1DFF
        | 0x20D0..=0x20FF
        | 0xFE00..=0xFE0F
        | 0xFE20..=0xFE2F => 0,
        0x1100..=0x115F
        | 0x2E80..=0x303E
        | 0x3041..=0x4DBF
        | 0x4E00..=0xA4CF
        | 0xA960..=0xA97F
        | 0xAC00..=0xD7A3
        | 0xF900..=0xFAFF
        | 0xFE30..=0xFE6F
        | 0xFF00..=0xFF60
        | 0xFFE0..=0xFFE6
        | 0x1F300..=0x1F64F
        | 0x1F680..=0x1F6FF
        | 0x1F900..=0x1FAFF
        | 0x20000..=0x3FFFD => 2,
        _ => 1,
    }
}
