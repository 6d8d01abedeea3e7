//! Samples of `perf script`, folded: how often each stack was seen. Must never look at a program.

use std::collections::BTreeMap;

/// The deepest stack that is kept; what is above is cut off.
const DEEPEST: usize = 100;

/// The most different stacks that are kept.
const MOST_STACKS: usize = 200_000;

/// How often each stack was seen; from the outermost function to the innermost, the thread's name first.
pub type Stacks = BTreeMap<Vec<String>, u64>;

/// What a function of the kernel has behind its name.
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

/// One stack a line, as other programs that draw read it.
#[must_use]
pub fn text(stacks: &Stacks) -> String {
    stacks.iter().map(|(stack, count)| format!("{} {count}\n", stack.join(";"))).collect()
}

/// The name of a thread, from a head such as `worker 1 32190`.
fn thread(head: &str) -> String {
    let head = head.trim();
    head.rsplit_once(' ').map_or(head, |(name, _)| name.trim()).replace(';', ":")
}

/// A function, from a line such as `ffffffff820113c2 tcp_recvmsg`; nothing where the stack was lost.
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
