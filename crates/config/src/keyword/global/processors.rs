//! Threads and the processors they run on (sections 3.1 and 3.2). Owns the parsing only: the crate `policy` selects
//! processors, and the process queries the system.

use super::{GlobalContext, GlobalKeyword, supported};
use crate::document::{Line, Word};
use crate::keyword::argument::leading_number;
use crate::spec::{CpuAffinity, CpuMapSpec, CpuPolicy, CpuSetSpec, CpuUnit};
use base::ProcessorSet;
use base::processors::MOST_PROCESSORS;

/// Every keyword of the family.
pub(super) const TABLE: &[GlobalKeyword] = &[
    supported("nbthread", "<number>", "Number of threads.", nbthread),
    supported("thread-hard-limit", "<number>", "Upper bound on the number of threads.", hard_limit),
    supported(
        "thread-groups",
        "<number>",
        "Number of thread groups. Weir's threads share all data; a group only names threads for \"cpu-map\" and \
         bounds their number.",
        thread_groups,
    ),
    supported("thread-group", "<group> [<thread-range>...]", "Threads of a group.", thread_group),
    supported(
        "max-threads-per-group",
        "<number>",
        "Maximum number of threads in a group; more threads form another group.",
        max_threads_per_group,
    ),
    supported(
        "cpu-map",
        "[auto:]<thread-group>[/<thread-set>] <cpu-set>[,...] [...]",
        "Processors on which threads run.",
        cpu_map,
    ),
    supported(
        "cpu-policy",
        "<policy> [threads-per-core { 1 | auto }]",
        "Policy by which threads are distributed over processors.",
        cpu_policy,
    ),
    supported("cpu-set", "<directive>...", "Processors that may be used.", cpu_set),
    supported("cpu-affinity", "<affinity>", "How strictly threads are bound to processors.", cpu_affinity),
    supported("numa-cpu-mapping", "[no]", "Whether \"cpu-policy\" may choose processors (default).", numa_cpu_mapping),
];

/// Maximum number of thread groups.
const MOST_GROUPS: i64 = 32;
/// Maximum number of threads of a group.
const MOST_OF_GROUP: u32 = 64;
/// Maximum number of threads.
const MOST_THREADS: i64 = 1024;

/// Parses the integer after a keyword, or reports HAProxy's sentence about its absence.
fn integer(context: &mut GlobalContext<'_>, line: &Line) -> Option<i64> {
    let text = line.text(1);
    let (value, clean) = leading_number(text);
    if !clean {
        let message = format!("'{}' passed a missing or unparsable integer value in '{text}'", line.keyword());
        context.report.alert(line.span(1), message);
    }
    clean.then_some(value)
}

/// Parses an [`integer`] as the only argument, within bounds.
fn bounded(context: &mut GlobalContext<'_>, line: &Line, most: i64) -> Option<u32> {
    let name = line.keyword();
    if context.report.too_many(line, 2, name) {
        return None;
    }
    let value = integer(context, line)?;
    if (1..=most).contains(&value) {
        return u32::try_from(value).ok();
    }
    context.report.alert(line.span(1), format!("'{name}' value must be between 1 and {most} (was {value})"));
    None
}

/// Whether a line follows the first other section, which was already parsed with the previous value.
fn is_late(context: &mut GlobalContext<'_>, line: &Line) -> bool {
    if context.around.follows_sections {
        let message = format!(
            "'{}' not allowed if a non-global section was previously defined. This parameter must be declared in the first \
             global section",
            line.keyword()
        );
        context.report.alert(line.span(0), message);
    }
    context.around.follows_sections
}

fn nbthread(context: &mut GlobalContext<'_>, line: &Line) {
    if is_late(context, line) {
        return;
    }
    context.spec.nbthread = bounded(context, line, MOST_THREADS).or(context.spec.nbthread);
}

fn thread_groups(context: &mut GlobalContext<'_>, line: &Line) {
    if is_late(context, line) {
        return;
    }
    let known = context.spec.processors.thread_groups;
    context.spec.processors.thread_groups = bounded(context, line, MOST_GROUPS).or(known);
}

fn hard_limit(context: &mut GlobalContext<'_>, line: &Line) {
    if context.report.too_many(line, 2, "thread-hard-limit") {
        return;
    }
    let Some(value) = integer(context, line) else { return };
    match u32::try_from(value) {
        Ok(limit) if (1..=MOST_THREADS).contains(&value) => context.spec.processors.thread_hard_limit = Some(limit),
        _ => {
            let message = format!("'thread-hard-limit' value must be at least 1 (was {value})");
            context.report.alert(line.span(1), message);
        }
    }
}

fn max_threads_per_group(context: &mut GlobalContext<'_>, line: &Line) {
    if context.report.too_many(line, 2, "max-threads-per-group") {
        return;
    }
    match leading_number(line.text(1)) {
        // HAProxy reads 0 as its default.
        (0, true) => context.spec.processors.max_threads_per_group = None,
        (value @ 1..=64, true) => context.spec.processors.max_threads_per_group = u32::try_from(value).ok(),
        _ => {
            let message = format!(
                "'max-threads-per-group' value must be an integer between 1 and {MOST_OF_GROUP},  got '{}'",
                line.text(1)
            );
            context.report.alert(line.span(1), message);
        }
    }
}

fn thread_group(context: &mut GlobalContext<'_>, line: &Line) {
    if is_late(context, line) {
        return;
    }
    let Some(value) = integer(context, line) else { return };
    let Some(group) = u32::try_from(value).ok().filter(|_| (1..=MOST_GROUPS).contains(&value)) else {
        let message = format!("'thread-group' thread-group number must be between 1 and {MOST_GROUPS} (was {value})");
        context.report.alert(line.span(1), message);
        return;
    };
    let mut threads = 0;
    for word in line.words.iter().skip(2) {
        match range(&word.text, 1, MOST_THREADS) {
            Ok((low, high)) => threads += high - low + 1,
            Err(_) => {
                let message = format!(
                    "'thread-group {group}' passed an unparsable or invalid thread number '{}' (valid range is 1 to \
                     {MOST_THREADS})",
                    word.text
                );
                context.report.alert(word.span, message);
                return;
            }
        }
    }
    let groups = &mut context.spec.processors.groups;
    groups.retain(|(known, _)| *known != group);
    groups.push((group, threads.min(MOST_OF_GROUP)));
}

/// Reason why a range of numbers is invalid.
enum RangeError {
    /// Malformed.
    Shape,
    /// A number is out of bounds.
    Bounds,
}

/// Parses `number[-[number]]`, in either order.
fn range(text: &str, least: i64, most: i64) -> Result<(u32, u32), RangeError> {
    let number = |text: &str| match leading_number(text) {
        (value, true) if !text.starts_with(['+', '-', ' ']) => Ok(value),
        _ => Err(RangeError::Shape),
    };
    let (low, high) = match text.split_once('-') {
        None => (number(text)?, number(text)?),
        Some((low, "")) => (number(low)?, most),
        Some((low, high)) => (number(low)?, number(high)?),
    };
    let (low, high) = (low.min(high), low.max(high));
    if low < least || high > most {
        return Err(RangeError::Bounds);
    }
    Ok((u32::try_from(low).map_err(|_| RangeError::Bounds)?, u32::try_from(high).map_err(|_| RangeError::Bounds)?))
}

/// Parses `all`, `odd`, `even` or a range into a bit mask; bit 0 is number 1.
fn members(text: &str) -> Result<u64, String> {
    match text {
        "all" => return Ok(u64::MAX),
        "odd" => return Ok(0x5555_5555_5555_5555),
        "even" => return Ok(0xAAAA_AAAA_AAAA_AAAA),
        _ => {}
    }
    let of_number = text.trim_start_matches('-');
    let (least, most) = (1, i64::from(MOST_OF_GROUP));
    match range(if of_number.is_empty() { text } else { of_number }, least, most) {
        Ok((low, high)) if of_number.len() == text.len() => Ok((low..=high).fold(0, |bits, bit| bits | 1 << (bit - 1))),
        Err(RangeError::Shape) => Err(format!("'{text}' is not a valid number/range.")),
        _ => Err(format!("'{text}' is not a valid number/range. It supports numbers from 1 to {most}.")),
    }
}

/// Parses sets of processors: comma-separated ranges in any number of words.
fn processors(words: &[Word]) -> Result<ProcessorSet, (usize, String)> {
    let mut set = ProcessorSet::EMPTY;
    for (index, word) in words.iter().enumerate() {
        let parts = word.text.strip_suffix(',').unwrap_or(&word.text).split(',');
        for part in parts {
            match range(part, 0, i64::from(MOST_PROCESSORS) - 1) {
                Ok((low, high)) => (low..=high).for_each(|number| set.insert(number)),
                Err(RangeError::Shape) => return Err((index, format!("'{}' is not a CPU range.", word.text))),
                Err(RangeError::Bounds) => {
                    return Err((index, format!("supports CPU numbers from 0 to {}.", MOST_PROCESSORS - 1)));
                }
            }
        }
    }
    Ok(set)
}

fn cpu_map(context: &mut GlobalContext<'_>, line: &Line) {
    if line.words.len() < 3 {
        context.report.alert(
            line.span(line.words.len()),
            "cpu-map expects a thread group number  ('all', 'odd', 'even', a number from 1 to 64 or a range),  \
             followed by a list of CPU ranges with numbers from 0 to 63.",
        );
        return;
    }
    let threads = line.text(1);
    let (auto, threads) = threads.strip_prefix("auto:").map_or((false, threads), |rest| (true, rest));
    let (groups, threads) =
        threads.split_once('/').map_or((threads, None), |(groups, threads)| (groups, Some(threads)));
    let read = members(groups).and_then(|groups| Ok((groups, threads.map(members).transpose()?)));
    let (groups, threads) = match read {
        Ok(read) => read,
        Err(sentence) => return context.report.alert(line.span(1), format!("cpu-map : {sentence}")),
    };
    let processors = match processors(&line.words[2..]) {
        Ok(processors) => processors,
        Err((index, sentence)) => return context.report.alert(line.span(2 + index), format!("cpu-map : {sentence}")),
    };
    let size = threads.unwrap_or(groups).count_ones() as usize;
    if auto && size != processors.len() {
        const SIZES: &str =
            "cpu-map : TGROUP/THREAD range and CPU sets must have the same size to be automatically bound";
        return context.report.alert(line.span(1), SIZES);
    }
    context.spec.processors.maps.push(CpuMapSpec { auto, groups, threads, processors });
}

/// The policies with HAProxy's descriptions.
const POLICIES: &[(&str, CpuPolicy, &str)] = &[
    ("none", CpuPolicy::None, "use all available CPUs"),
    ("performance", CpuPolicy::Performance, "make one thread group per perf. core cluster"),
    ("group-by-ccx", CpuPolicy::Ccx(1), "make one thread group per CCX"),
    ("group-by-2-ccx", CpuPolicy::Ccx(2), "make one thread group per 2 CCX"),
    ("group-by-3-ccx", CpuPolicy::Ccx(3), "make one thread group per 3 CCX"),
    ("group-by-4-ccx", CpuPolicy::Ccx(4), "make one thread group per 4 CCX"),
    ("group-by-cluster", CpuPolicy::Clusters(1), "make one thread group per core cluster"),
    ("group-by-2-clusters", CpuPolicy::Clusters(2), "make one thread group per 2 core clusters"),
    ("group-by-3-clusters", CpuPolicy::Clusters(3), "make one thread group per 3 core clusters"),
    ("group-by-4-clusters", CpuPolicy::Clusters(4), "make one thread group per 4 core clusters"),
    ("efficiency", CpuPolicy::Efficiency, "make one thread group per eff. core cluster"),
    ("resource", CpuPolicy::Resource, "make one thread group from the smallest cluster"),
    ("first-usable-node", CpuPolicy::FirstUsableNode, "use only first usable node if nbthreads not set"),
];

fn cpu_policy(context: &mut GlobalContext<'_>, line: &Line) {
    let Some((_, policy, _)) = POLICIES.iter().find(|(name, ..)| *name == line.text(1)) else {
        let known: Vec<String> = POLICIES.iter().map(|(name, _, doc)| format!("'{name}' ({doc})")).collect();
        let (last, others) = known.split_last().map_or(("", &known[..]), |(last, others)| (last.as_str(), others));
        let message = format!(
            "'cpu-policy' passed an unknown CPU policy '{}'. Supported values are: {}, and {last}.",
            line.text(1),
            others.join(", ")
        );
        return context.report.alert(line.span(1), message);
    };
    let one = match (line.text(2), line.text(3)) {
        ("", _) => false,
        ("threads-per-core", "1") => true,
        ("threads-per-core", "auto") => false,
        ("threads-per-core", value) => {
            let message = format!(
                "'cpu-policy' passed an unknown value '{value}' to keyword 'threads-per-core', known values are 1 or \
                 auto"
            );
            return context.report.alert(line.span(3), message);
        }
        (word, _) => {
            let message =
                format!("'cpu-policy' passed an unknown keyword '{word}', the only known values are threads-per-core");
            return context.report.alert(line.span(2), message);
        }
    };
    if !context.report.too_many(line, 4, "cpu-policy") {
        context.spec.processors.policy = Some(*policy);
        context.spec.processors.one_thread_per_core = one;
    }
}

fn cpu_affinity(context: &mut GlobalContext<'_>, line: &Line) {
    let (kind, argument) = (line.text(1), line.text(2));
    let affinity = match (kind, argument) {
        ("per-core", _) => CpuAffinity::Core,
        ("per-group", "" | "auto") => CpuAffinity::Group { loose: false },
        ("per-group", "loose") => CpuAffinity::Group { loose: true },
        ("per-group", _) => {
            let message = format!(
                "'per-group' provided with unknown optional argument '{argument}'.  Known values are : loose auto"
            );
            return context.report.alert(line.span(2), message);
        }
        ("per-thread", _) => CpuAffinity::Thread,
        ("per-ccx", _) => CpuAffinity::Ccx,
        ("auto", _) => CpuAffinity::Auto,
        _ => {
            let message = format!(
                "'cpu-affinity' parsed an unknown directive '{kind}'. Known values are : per-core per-group \
                 per-thread per-ccx auto"
            );
            return context.report.alert(line.span(1), message);
        }
    };
    if kind != "per-group" && !argument.is_empty() {
        let message = format!("'{kind}' provided with unknown optional argument '{argument}'. ");
        return context.report.alert(line.span(2), message);
    }
    if !context.report.too_many(line, 3, "cpu-affinity") {
        context.spec.processors.affinity = affinity;
    }
}

/// The directives that restrict, in the order of HAProxy's messages.
const RESTRICTIONS: &[(&str, bool, CpuUnit)] = &[
    ("only-cpu", true, CpuUnit::Cpu),
    ("drop-cpu", false, CpuUnit::Cpu),
    ("only-node", true, CpuUnit::Node),
    ("drop-node", false, CpuUnit::Node),
    ("only-cluster", true, CpuUnit::Cluster),
    ("drop-cluster", false, CpuUnit::Cluster),
    ("only-core", true, CpuUnit::Core),
    ("drop-core", false, CpuUnit::Core),
    ("only-thread", true, CpuUnit::Thread),
    ("drop-thread", false, CpuUnit::Thread),
];

fn cpu_set(context: &mut GlobalContext<'_>, line: &Line) {
    let known = || {
        let names: Vec<String> = RESTRICTIONS.iter().map(|(name, ..)| format!("'{name}'")).collect();
        format!("(only 'reset', {} supported).", names.join(", "))
    };
    if line.words.len() < 2 {
        let message = format!("'cpu-set' requires a directive and an optional value {}", known());
        return context.report.alert(line.span(1), message);
    }
    let mut place = 1;
    while let Some(word) = line.words.get(place) {
        if word.text == "reset" {
            context.spec.processors.sets.push(CpuSetSpec::Reset);
            place += 1;
            continue;
        }
        let Some(&(name, only, unit)) = RESTRICTIONS.iter().find(|(name, ..)| *name == word.text) else {
            let message = format!("'cpu-set' passed an unknown directive '{}' {}", word.text, known());
            return context.report.alert(word.span, message);
        };
        let read = match line.words.get(place + 1) {
            Some(word) => processors(std::slice::from_ref(word)).map_err(|(_, sentence)| sentence),
            None => Err("missing CPU set".to_owned()),
        };
        match read {
            Ok(numbers) => context.spec.processors.sets.push(CpuSetSpec::Restrict { only, unit, numbers }),
            Err(sentence) => {
                return context.report.alert(line.span(place + 1), format!("'cpu-set {name}': {sentence}"));
            }
        }
        place += 2;
    }
}

fn numa_cpu_mapping(context: &mut GlobalContext<'_>, _: &Line) {
    context.spec.processors.no_numa_mapping = context.negated;
}
