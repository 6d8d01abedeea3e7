//! Folding of samples of `perf script`: counts each stack. Must never access a program.

use std::collections::BTreeMap;

/// Maximum depth of a stack; frames above are cut off.
const DEEPEST: usize = 100;

/// Maximum number of different stacks.
const MOST_STACKS: usize = 200_000;

/// Number of samples of each stack; from the outermost function to the innermost, the thread's name first.
pub type Stacks = BTreeMap<Vec<String>, u64>;

/// Suffix of a kernel function's name.
pub const KERNEL: &str = "_[k]";

/// Counts the stacks of `perf script -F comm,tid,ip,sym`.
#[must_use]
pub fn fold(text: &str) -> Stacks {
    let mut stacks = Stacks::new();
    for sample in text.split("\n\n") {
        let mut lines = sample.lines().filter(|line| !line.trim().is_empty());
        let Some(head) = lines.next() else { continue };
        let mut stack: Vec<String> = lines.filter_map(frame).take(DEEPEST).collect();
        stack.push(thread(head));
        stack.reverse();
        if stacks.len() < MOST_STACKS || stacks.contains_key(&stack) {
            *stacks.entry(stack).or_default() += 1;
        }
    }
    stacks
}

/// Returns one stack per line, in the common format of folded stacks.
#[must_use]
pub fn text(stacks: &Stacks) -> String {
    stacks.iter().map(|(stack, count)| format!("{} {count}\n", stack.join(";"))).collect()
}

/// Parses the name of a thread, from a head such as `worker 1 32190`.
fn thread(head: &str) -> String {
    let head = head.trim();
    head.rsplit_once(' ').map_or(head, |(name, _)| name.trim()).replace(';', ":")
}

/// Parses a function, from a line such as `ffffffff820113c2 tcp_recvmsg`; `None` if the stack was lost.
fn frame(line: &str) -> Option<String> {
    let (address, name) = line.trim().split_once(' ')?;
    let address = u64::from_str_radix(address, 16).ok()?;
    if address == u64::MAX {
        return None;
    }
    let kernel = if address >> 63 == 1 { KERNEL } else { "" };
    Some(format!("{}{kernel}", name.trim().replace(';', ":")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_stacks_are_counted_from_the_outside() {
        let sample = "worker 1 32190 \n\tffffffff820113c2 tcp_recvmsg\n\t 2a6112 rt::Stream::try_read\n\t 29a66a run;worker\n\
                      \tffffffffffffffff [unknown]\n\n";
        let other = "weir 7\n\t 29a66a main\n\n";
        let stacks = fold(&[sample, other, sample].concat());
        assert_eq!(text(&stacks), "weir;main 1\nworker 1;run:worker;rt::Stream::try_read;tcp_recvmsg_[k] 2\n");
        assert!(fold("").is_empty());
    }
}
