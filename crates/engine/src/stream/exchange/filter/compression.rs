//! `filter comp-req` and `filter comp-res` (configuration manual, sections 4 "compression" and 9.2): compresses the bodies of one
//! direction. Chooses the algorithm by the heads; `coding` encodes. Holds one encoder state of bounded size. Must never look into
//! a body, and never remove a content coding.

use std::rc::Rc;

use base::buffer::Buffer;
use config::spec::CompressionAlgorithm;
use conn::flow::{FilterOutput, forward, make_output};
use expression::sample::Direction;
use live::ReservedMemory;
use live::counters::{ContentCounters, Count, ProcessCounters, Rate};
use policy::program::{self, Compression, GlobalCompression};
use wire::http::coding::{FULL_WEIGHT, accepted};
use wire::http::{Framing, Head, Version};

use super::coding::{Encoder, Flush, memory};
use crate::filter::{Event, Filter, FilterContext, ProxyPair};
use crate::probes::usage;
use crate::stream_state::StreamState;
use crate::worker::Worker;

/// Bytes that are compressed in a row.
const PIECE: usize = 16 * 1024;

/// Compresses one direction of a stream.
pub(super) struct CompressionFilter {
    plan: program::CompressionFilter,
    worker: Rc<Worker>,
    frontend: usize,
    backend: Option<usize>,
    limits: GlobalCompression,
    /// The algorithm that the client accepts, once its request is known.
    accepted: Option<CompressionAlgorithm>,
    settings: Settings,
    coder: Option<Coder>,
}

/// Settings of the stream, merged from both proxies.
#[derive(Default)]
struct Settings {
    request_algorithm: Option<CompressionAlgorithm>,
    /// Prefixes of media types to compress, for the filter's direction.
    types: Vec<Box<str>>,
    least: u64,
}

/// State of a body being compressed.
struct Coder {
    algorithm: CompressionAlgorithm,
    /// `None`: `identity`.
    state: Option<State>,
    /// The message has been counted.
    counted: bool,
}

struct State {
    encoder: Encoder,
    level: u32,
    /// All input was consumed, but its output is not complete.
    flushing: bool,
    /// The last byte was written.
    finished: bool,
    _memory: ReservedMemory,
}

/// Chooses the filter that compresses a received response, and the algorithm, before its rules run.
pub fn judge(state: &mut StreamState) {
    let Some(filters) = state.filters.clone() else { return };
    let set = &mut *filters.borrow_mut();
    // Only one filter compresses it.
    let found = set.response.iter().find_map(|index| {
        let own = set.attached[*index].filter.as_kind_mut::<CompressionFilter>();
        own.and_then(|own| own.judge(state))
    });
    state.answer.compression = found;
}

impl CompressionFilter {
    pub(super) fn new(
        plan: program::CompressionFilter,
        worker: &Rc<Worker>,
        frontend: usize,
        limits: GlobalCompression,
    ) -> Self {
        let worker = Rc::clone(worker);
        let settings = Settings::default();
        Self { plan, worker, frontend, backend: None, limits, accepted: None, settings, coder: None }
    }

    /// Decides whether it compresses a received response, before its rules run. Returns the name of the algorithm.
    fn judge(&mut self, state: &StreamState) -> Option<&'static str> {
        let algorithm = self.accepted.filter(|_| !self.plan.upload)?;
        let head = &state.response;
        let transforms = !head.all(b"cache-control").any(|value| names(value, b"no-transform"));
        let fits = matches!(head.status(), 200..=203)
            && !state.wants_head_alone()
            && state.request.version() == Version::Http11
            && transforms
            && may_be_coded(head, self.settings.least)
            && has_sound_etag(head)
            && !is_multipart(head)
            && has_type(head, &self.settings.types);
        self.coder = if fits { self.coder(algorithm) } else { None };
        self.coder.as_ref().map(|coder| coder.algorithm.name())
    }

    /// Whether `maxcomprate` or `maxcompcpuusage` limits compression now.
    fn is_limited(&self) -> bool {
        let most = self.worker.process.live.process.compression.bytes_a_second();
        if most > 0 {
            let workers = self.worker.process.counters.workers.iter();
            let read = Rate::read(rt::now(), workers.map(|worker| &worker.process.compressor_in_rate));
            if read > most as f64 {
                return true;
            }
        }
        self.limits.usage < 100 && usage(expression::sample::UsageOf::Worker) > self.limits.usage
    }

    /// Starts to compress. `None`: there is no memory for it, or a limit is reached.
    fn coder(&self, algorithm: CompressionAlgorithm) -> Option<Coder> {
        if algorithm == CompressionAlgorithm::Identity {
            return Some(Coder { algorithm, state: None, counted: false });
        }
        if rt::memory_is_critical() || self.is_limited() {
            return None;
        }
        let bytes = memory(algorithm, &self.limits);
        let reserved = self.worker.process.live.process.compression.reserve(bytes, self.limits.memory)?;
        let encoder = Encoder::new(algorithm, &self.limits)?;
        let level = self.limits.level;
        let state = State { encoder, level, flushing: false, finished: false, _memory: reserved };
        Some(Coder { algorithm, state: Some(state), counted: false })
    }

    /// Counts for both proxies. Requests are not counted, as in HAProxy.
    fn count(&self, count: impl Fn(&ContentCounters)) {
        if self.plan.upload {
            return;
        }
        let counters = self.worker.counters();
        count(&counters.proxies[self.frontend].front_content);
        if let Some(backend) = self.backend {
            count(&counters.proxies[backend].serving().content);
        }
    }

    /// Counts input and output of the compressor; with `bypassed`, the bytes were not compressed.
    fn count_bytes(&self, read: u64, written: u64, bypassed: bool) {
        let add = |count: &Count, bytes| count.add(bytes);
        if bypassed {
            return self.count(|counters| add(&counters.compressor_bypassed, read));
        }
        self.count(|counters| {
            add(&counters.compressor_in, read);
            add(&counters.compressor_out, written);
        });
        let all = |rate: fn(&ProcessCounters) -> &Rate| {
            let workers = &self.worker.process.counters.workers;
            move || workers.iter().map(move |worker| rate(&worker.process))
        };
        let (process, now) = (&self.worker.counters().process, rt::now());
        process.compressor_in_rate.add(now, read, all(|process| &process.compressor_in_rate));
        process.compressor_out_rate.add(now, written, all(|process| &process.compressor_out_rate));
    }

    /// Compresses one piece of the available input. `None`: it failed.
    fn compress(&mut self, input: &mut Buffer, output: &mut Buffer, ended: bool) -> Option<()> {
        let adapts = self.limits.usage < 100 || self.worker.process.live.process.compression.bytes_a_second() > 0;
        let limited = adapts && self.is_limited();
        let state = self.coder.as_mut()?.state.as_mut()?;
        if adapts && !state.flushing {
            state.adapt(limited, self.limits.level);
        }
        let bypassed = state.level == 0;
        let (read, written) = state.run(input, output, ended)?;
        self.count_bytes(read, written, bypassed);
        Some(())
    }

    /// Changes the head of a message whose body is compressed.
    fn mark(coding: CompressionAlgorithm, head: &mut Head) {
        head.frame_in_chunks();
        let etag = head.fields().position(|(name, value)| name == b"etag" && is_strong(value));
        if let Some(index) = etag {
            head.fields.splice_value(index, 0..0, b"W/");
        }
        let varies = head.all(b"vary").any(|value| names(value, b"accept-encoding"));
        if !varies {
            add_vary(head);
        }
        if coding != CompressionAlgorithm::Identity {
            head.append(b"content-encoding", coding.coding().as_bytes());
        }
    }

    /// Counts a response after all of it was consumed.
    fn end(&mut self) {
        if let Some(coder) = &mut self.coder
            && !std::mem::replace(&mut coder.counted, true)
        {
            self.count(|counters| counters.compressed.increment());
        }
    }
}

impl State {
    /// Lowers the level while a limit is reached, and raises it again afterwards.
    fn adapt(&mut self, limited: bool, most: u32) {
        let next = if limited { self.level.saturating_sub(1) } else { (self.level + 1).min(most) };
        // Everything was flushed, so that a change causes no output; if it fails, the level stays.
        if next != self.level && self.encoder.set_level(next) {
            self.level = next;
        }
    }

    /// Compresses one piece, as far as the output has space; returns the bytes read and written. The output is flushed, so that
    /// all input received so far can be decoded.
    fn run(&mut self, input: &mut Buffer, output: &mut Buffer, ended: bool) -> Option<(u64, u64)> {
        make_output(output);
        let length = input.len().min(PIECE);
        let is_last = length == input.len();
        let flush = match (is_last, ended) {
            (true, true) => Flush::End,
            (true, false) => Flush::Now,
            (false, _) => Flush::Later,
        };
        let (mut read, mut written) = (0, 0);
        loop {
            let done = self.encoder.encode(&input.data()[..length - read], output.spare_mut(), flush)?;
            let (taken, made) = (done.taken, done.made);
            input.consume(taken);
            output.advance(made);
            (read, written) = (read + taken, written + made);
            self.finished = done.finished;
            let full = output.room() == 0;
            self.flushing = is_last && !self.finished && (full || ended);
            if full || self.finished || read == length && !ended || taken == 0 && made == 0 {
                return Some((read as u64, written as u64));
            }
        }
    }
}

/// Returns the algorithm that a request prefers (`Accept-Encoding`) out of `algorithms`; `identity` if it accepts none and that
/// is listed. Among equals, the first one in the request is used, as in HAProxy; if the configuration lists codings that HAProxy
/// does not support, the first one there: browsers list the best coding last.
fn choose(request: &Head, algorithms: &[CompressionAlgorithm]) -> Option<CompressionAlgorithm> {
    let (mut best, mut weight) = (None, 0);
    let all = || request.all(b"accept-encoding").flat_map(accepted);
    let named = |algorithm: CompressionAlgorithm| {
        all().find(|one| one.name.eq_ignore_ascii_case(algorithm.coding().as_bytes())).map(|one| one.weight)
    };
    if algorithms.iter().any(|own| matches!(own, CompressionAlgorithm::Brotli | CompressionAlgorithm::Zstd)) {
        let others = all().find(|one| one.name == b"*").map_or(0, |one| one.weight);
        for algorithm in algorithms.iter().rev().filter(|own| **own != CompressionAlgorithm::Identity) {
            let own = named(*algorithm).unwrap_or(others);
            if own > weight {
                (best, weight) = (Some(*algorithm), own);
            }
        }
    } else {
        for one in all().filter(|one| one.weight > 0) {
            if one.weight <= weight {
                continue;
            }
            let matching = |algorithm: &&CompressionAlgorithm| match one.name {
                // It matches codings that the field does not name.
                b"*" => named(**algorithm).is_none(),
                name => name.eq_ignore_ascii_case(algorithm.coding().as_bytes()),
            };
            if let Some(algorithm) = algorithms.iter().find(matching) {
                (best, weight) = (Some(*algorithm), one.weight);
                if weight == FULL_WEIGHT {
                    break;
                }
            }
        }
    }
    best.or_else(|| algorithms.iter().copied().find(|algorithm| *algorithm == CompressionAlgorithm::Identity))
}

/// Whether a client advertises codings that it cannot decode: `Mozilla/4`, except MSIE 6 with the second service pack of Windows
/// XP and MSIE from 7 on.
fn is_broken(agent: &[u8]) -> bool {
    if !agent.starts_with(b"Mozilla/4") {
        return false;
    }
    let Some(at) = memchr::memmem::find(agent, b"MSIE ") else { return true };
    let rest = &agent[at + b"MSIE ".len()..];
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit());
    let major = digits.take(4).fold(0_u32, |number, digit| number * 10 + u32::from(digit - b'0'));
    match major {
        7.. => false,
        6 => memchr::memmem::find(rest, b"; SV1").is_none(),
        _ => true,
    }
}

/// Whether a list of tokens contains a token, given in lower case.
fn names(list: &[u8], token: &[u8]) -> bool {
    list.split(|byte| *byte == b',').any(|one| one.trim_ascii().eq_ignore_ascii_case(token))
}

/// Whether an entity tag is strong (RFC 9110, section 8.8.3).
pub(super) fn is_strong(etag: &[u8]) -> bool {
    etag.len() >= 2 && etag.starts_with(b"\"") && etag.ends_with(b"\"")
}

/// Whether a message has no entity tag, or a single valid one.
fn has_sound_etag(head: &Head) -> bool {
    let mut etags = head.all(b"etag");
    match (etags.next(), etags.next()) {
        (None, _) => true,
        (Some(etag), None) => is_strong(etag.strip_prefix(b"W/").unwrap_or(etag)),
        _ => false,
    }
}

/// Adds Accept-Encoding to Vary.
fn add_vary(head: &mut Head) {
    let last = head.fields().enumerate().filter(|(_, (name, _))| *name == b"vary").last();
    match last.map(|(index, (_, value))| (index, value.is_empty())) {
        None => head.append(b"vary", b"Accept-Encoding"),
        Some((index, true)) => head.fields.set_value(index, b"Accept-Encoding"),
        Some(_) => {
            head.fields.extend_last(b"vary", b",Accept-Encoding");
        }
    }
}

fn begins(value: &[u8], with: &[u8]) -> bool {
    value.get(..with.len()).is_some_and(|part| part.eq_ignore_ascii_case(with))
}

/// Whether the media type of a message matches one of `types`.
fn has_type(head: &Head, types: &[Box<str>]) -> bool {
    match head.first(b"content-type") {
        Some(value) => types.is_empty() || types.iter().any(|one| begins(value, one.as_bytes())),
        None => types.is_empty(),
    }
}

/// Whether the body is multipart, which is not compressed in responses; requests may have it.
fn is_multipart(head: &Head) -> bool {
    head.first(b"content-type").is_some_and(|value| begins(value, b"multipart"))
}

/// Whether the body of a message can be compressed: its framing delimits it, it is large enough, and it has no content coding.
fn may_be_coded(head: &Head, least: u64) -> bool {
    let size = match head.framing {
        Framing::Length(length) => length > 0 && length >= least,
        Framing::Chunked => true,
        Framing::None | Framing::UntilClose => false,
    };
    size && head.version() == Version::Http11 && !head.contains(b"content-encoding")
}

impl Settings {
    fn of(upload: bool, both: &[&Compression]) -> Self {
        let types = |plan: &Compression| if upload { plan.request_types.to_vec() } else { plan.types.to_vec() };
        let least = |plan: &Compression| if upload { plan.request_least } else { plan.least };
        Self {
            request_algorithm: both.iter().find_map(|plan| plan.request_algorithm),
            types: both.iter().map(|plan| types(plan)).find(|types| !types.is_empty()).unwrap_or_default(),
            least: both.iter().map(|plan| least(plan)).find(|least| *least > 0).unwrap_or(0),
        }
    }
}

impl Filter for CompressionFilter {
    fn note(&mut self, _: &FilterContext, event: Event<'_>) {
        // The response that was chosen for compression is discarded.
        if event == Event::Restarted && !self.plan.upload {
            self.coder = None;
        }
    }

    fn negotiate(&mut self, proxies: &ProxyPair<'_>, request: &mut Head) {
        if !self.plan.enabled {
            return;
        }
        self.backend = proxies.backend.map(|proxy| proxy.index);
        let both: Vec<&Compression> = [proxies.backend, Some(proxies.frontend)]
            .into_iter()
            .flatten()
            .filter_map(|proxy| proxy.compression.as_deref())
            .collect();
        self.settings = Settings::of(self.plan.upload, &both);
        if self.plan.upload {
            return;
        }
        let algorithms = both.iter().map(|plan| &*plan.algorithms).find(|list| !list.is_empty()).unwrap_or_default();
        let broken = request.first(b"user-agent").is_some_and(is_broken);
        if !broken {
            self.accepted = choose(request, algorithms);
        }
        // Servers must not compress if this filter does (`compression offload`).
        let compresses = self.accepted.is_some_and(|algorithm| algorithm != CompressionAlgorithm::Identity);
        if compresses && both.iter().any(|plan| plan.offload) {
            request.remove_all(b"accept-encoding");
        }
    }

    fn head(&mut self, _: &FilterContext, direction: Direction, head: &mut Head) {
        if (direction == Direction::Request) != self.plan.upload {
            return;
        }
        if self.plan.upload {
            let algorithm = self.settings.request_algorithm.filter(|_| self.plan.enabled && !head.connection.upgrade);
            let fits = may_be_coded(head, self.settings.least) && has_type(head, &self.settings.types);
            self.coder = algorithm.filter(|_| fits).and_then(|algorithm| self.coder(algorithm));
        } else if !head.framing.has_body() || matches!(head.status(), 0..=199 | 204 | 304) {
            // A rule has replaced the response.
            self.coder = None;
        }
        if let Some(coder) = &self.coder {
            Self::mark(coder.algorithm, head);
        }
    }

    fn recodes(&self) -> bool {
        !self.plan.upload && self.coder.is_some()
    }

    fn wants(&self, direction: Direction) -> bool {
        (direction == Direction::Request) == self.plan.upload && self.coder.is_some()
    }

    fn body(
        &mut self,
        _: &FilterContext,
        _: Direction,
        input: &mut Buffer,
        output: &mut Buffer,
        ended: bool,
    ) -> FilterOutput {
        let (is_identity, flushing, finished) = match &self.coder {
            Some(Coder { state: Some(state), .. }) => (false, state.flushing, state.finished),
            _ => (true, false, false),
        };
        if is_identity {
            if !input.is_empty() {
                let moved = forward(input, output, usize::MAX);
                self.count_bytes(moved as u64, 0, true);
            }
            if ended && input.is_empty() {
                self.end();
            }
            return if input.is_empty() { FilterOutput::Through } else { FilterOutput::Again };
        }
        if finished || input.is_empty() && !flushing && !ended {
            return FilterOutput::Through;
        }
        if self.compress(input, output, ended).is_none() {
            return FilterOutput::Refused;
        }
        let Some(Coder { state: Some(state), .. }) = &self.coder else { return FilterOutput::Through };
        if state.finished {
            self.end();
            return FilterOutput::Through;
        }
        if input.is_empty() && !state.flushing { FilterOutput::Through } else { FilterOutput::Again }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use CompressionAlgorithm::{Brotli, Deflate, Gzip, Identity, RawDeflate, Zstd};

    fn with(name: &[u8], values: &[&str]) -> Head {
        let mut head = Head::new();
        values.iter().for_each(|value| head.append(name, value.as_bytes()));
        head
    }

    #[test]
    fn the_algorithm_follows_the_weights() {
        let both = [Deflate, Gzip];
        let rows: &[(&[&str], &[CompressionAlgorithm], Option<CompressionAlgorithm>)] = &[
            (&[], &both, None),
            (&[""], &both, None),
            (&["gzip"], &both, Some(Gzip)),
            (&["GZIP"], &both, Some(Gzip)),
            (&["x-gzip"], &both, None),
            (&["gzip, deflate"], &both, Some(Gzip)),
            (&["deflate, gzip"], &both, Some(Deflate)),
            (&["gzip;q=0.5, deflate"], &both, Some(Deflate)),
            (&["deflate;q=0.5", "gzip"], &both, Some(Gzip)),
            (&["*"], &both, Some(Deflate)),
            (&["*;q=0"], &both, None),
            (&["deflate;q=0, *"], &both, Some(Gzip)),
            (&["deflate;q=0, gzip;q=0, *"], &both, None),
            (&["gzip;q=0"], &both, None),
            (&["br, gzip;q=0.001"], &both, Some(Gzip)),
            (&["deflate"], &[RawDeflate, Deflate], Some(RawDeflate)),
            (&[], &[Gzip, Identity], Some(Identity)),
            (&["gzip;q=0"], &[Gzip, Identity], Some(Identity)),
            (&["gzip"], &[Gzip, Identity], Some(Gzip)),
            (&["gzip"], &[], None),
            (&["gzip, deflate, br, zstd"], &[Gzip, Zstd, Brotli], Some(Brotli)),
            (&["gzip, zstd, br;q=0.9"], &[Gzip, Zstd, Brotli], Some(Zstd)),
            (&["gzip, br;q=0.9, *;q=0.1"], &[Zstd, Gzip, Brotli], Some(Gzip)),
            (&["br;q=0, *"], &[Zstd, Brotli], Some(Zstd)),
            (&["deflate"], &[Identity, Brotli], Some(Identity)),
        ];
        for (fields, algorithms, expected) in rows {
            let found = choose(&with(b"accept-encoding", fields), algorithms);
            assert_eq!(found, *expected, "{fields:?} of {algorithms:?}");
        }
    }

    #[test]
    fn old_browsers_are_known() {
        let rows = [
            ("Mozilla/5.0 (X11)", false),
            ("curl/8", false),
            ("Mozilla/4.08 [en]", true),
            ("Mozilla/4.0 (compatible; MSIE 5.5; Windows NT 5.1)", true),
            ("Mozilla/4.0 (compatible; MSIE 6.0; Windows NT 5.1)", true),
            ("Mozilla/4.0 (compatible; MSIE 6.0; Windows NT 5.1; SV1)", false),
            ("Mozilla/4.0 (compatible; MSIE 7.0; Windows NT 6.0)", false),
            ("Mozilla/4.0 (compatible; MSIE 10.0; Windows NT 6.2)", false),
        ];
        for (agent, expected) in rows {
            assert_eq!(is_broken(agent.as_bytes()), expected, "{agent}");
        }
    }

    #[test]
    fn vary_is_added_once() {
        let rows: &[(&[&str], &[&str])] = &[
            (&[], &["Accept-Encoding"]),
            (&["Other"], &["Other,Accept-Encoding"]),
            (&["accept-encoding, Other"], &["accept-encoding, Other"]),
            (&["Other,Accept-Encoding"], &["Other,Accept-Encoding"]),
            (&["Accept-Encoding", "Foo"], &["Accept-Encoding", "Foo"]),
            (&["Foo", "Bar"], &["Foo", "Bar,Accept-Encoding"]),
            (&[""], &["Accept-Encoding"]),
            (&["*"], &["*,Accept-Encoding"]),
            (&["accept-encodingx"], &["accept-encodingx,Accept-Encoding"]),
        ];
        for (before, after) in rows {
            let mut head = with(b"vary", before);
            CompressionFilter::mark(Gzip, &mut head);
            let found: Vec<&[u8]> = head.all(b"vary").collect();
            assert_eq!(found, after.iter().map(|value| value.as_bytes()).collect::<Vec<_>>(), "{before:?}");
            assert_eq!(head.first(b"content-encoding"), Some(&b"gzip"[..]));
        }
    }

    #[test]
    fn entity_tags_become_weak_where_they_make_sense() {
        let rows: &[(&[&str], bool, &str)] = &[
            (&["\"a\""], true, "W/\"a\""),
            (&["W/\"a\""], true, "W/\"a\""),
            (&["\"\""], true, "W/\"\""),
            (&["a"], false, "a"),
            (&["\"a"], false, "\"a"),
            (&["w/\"a\""], false, "w/\"a\""),
            (&[""], false, ""),
            (&["\""], false, "\""),
            (&["\"a\"", "\"a\""], false, "W/\"a\""),
        ];
        for (before, sound, after) in rows {
            let mut head = with(b"etag", before);
            assert_eq!(has_sound_etag(&head), *sound, "{before:?}");
            CompressionFilter::mark(Gzip, &mut head);
            assert_eq!(head.first(b"etag"), Some(after.as_bytes()), "{before:?}");
        }
    }

    #[test]
    fn media_types_are_told_by_their_beginning() {
        let types: &[Box<str>] = &["text/plain".into(), "image/svg".into()];
        let rows: &[(&[&str], bool, bool)] = &[
            (&["text/plain"], true, true),
            (&["TEXT/Plain; charset=x"], true, true),
            (&["text/plainx"], true, true),
            (&["text/html"], false, true),
            (&["multipart/mixed"], false, true),
            (&["Multipart/mixed"], false, true),
            (&[], false, true),
            (&["image/png", "text/plain"], false, true),
        ];
        for (values, listed, unlisted) in rows {
            let head = with(b"content-type", values);
            assert_eq!((has_type(&head, types), has_type(&head, &[])), (*listed, *unlisted), "{values:?}");
            assert_eq!(is_multipart(&head), values.iter().any(|value| value.contains("ultipart")), "{values:?}");
        }
    }
}
