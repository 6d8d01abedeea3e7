//! HTTP compression (section 4, "compression"). Must never decide about a message.

use super::{ProxyContext, ProxyKeyword, supported};
use crate::document::Line;
use crate::keyword::place::Section;
use crate::keyword::place::places::ANY;
use crate::spec::{CompressionAlgorithm, CompressionDirection, CompressionSpec};
use crate::suggest;
use crate::units;

/// Every keyword of the family.
pub(super) const TABLE: &[ProxyKeyword] = &[
    supported(ANY, "compression algo", "<algorithm>...", "Compression of responses.", algorithms),
    supported(ANY, "compression algo-req", "<algorithm>", "Compression of requests.", request_algorithm),
    supported(ANY, "compression algo-res", "<algorithm>...", "Compression of responses.", algorithms),
    supported(ANY, "compression direction", "{ request | response | both }", "Direction of compression.", direction),
    supported(ANY, "compression minsize-req", "<size>", "Minimum size of compressed requests.", |context, line| {
        least(context, line, |spec| &mut spec.request_least);
    }),
    supported(ANY, "compression minsize-res", "<size>", "Minimum size of compressed responses.", |context, line| {
        least(context, line, |spec| &mut spec.least);
    }),
    supported(ANY, "compression offload", "", "Removes Accept-Encoding from requests.", offload),
    supported(ANY, "compression type", "<type>...", "Content types to compress.", |context, line| {
        types(context, line, |spec| &mut spec.types);
    }),
    supported(ANY, "compression type-req", "<type>...", "Content types of requests to compress.", |context, line| {
        types(context, line, |spec| &mut spec.request_types);
    }),
    supported(ANY, "compression type-res", "<type>...", "Content types of responses to compress.", |context, line| {
        types(context, line, |spec| &mut spec.types);
    }),
];

fn spec<'c>(context: &'c mut ProxyContext<'_>) -> &'c mut CompressionSpec {
    let spec = &mut context.draft.spec.compression;
    spec.written = true;
    spec
}

/// Parses the algorithm in the word at `at`.
fn algorithm(context: &mut ProxyContext<'_>, line: &Line, at: usize) -> Option<CompressionAlgorithm> {
    let name = line.text(at);
    let found = CompressionAlgorithm::find(name);
    if found.is_none() {
        let message = format!("'compression' : '{name}' is not a supported algorithm.");
        let names = CompressionAlgorithm::ALL.map(CompressionAlgorithm::name);
        let hint = suggest::nearest(name, names).map(|known| format!("write '{known}'"));
        let mut diagnostic = crate::diagnostic::Diagnostic::alert(line.span(at), message);
        diagnostic.hint = hint;
        context.report.push(diagnostic);
    }
    found
}

fn algorithms(context: &mut ProxyContext<'_>, line: &Line) {
    if line.words.len() < 3 {
        context.report.alert(line.span(2), "'compression' expects <algorithm>.");
        return;
    }
    for at in 2..line.words.len() {
        let Some(found) = algorithm(context, line, at) else { return };
        spec(context).algorithms.push(found);
    }
}

fn request_algorithm(context: &mut ProxyContext<'_>, line: &Line) {
    let Some(found) = algorithm(context, line, 2) else { return };
    spec(context).request_algorithm = Some(found);
    if let Some(extra) = line.words.get(3) {
        let message = format!("'compression algo-req' takes one algorithm; '{}' behind it is not used.", extra.text);
        context.report.diag(extra.span, message);
    }
}

fn types(context: &mut ProxyContext<'_>, line: &Line, list: fn(&mut CompressionSpec) -> &mut Vec<String>) {
    if line.words.len() < 3 {
        context.report.alert(line.span(2), "'compression' expects <type>.");
        return;
    }
    let written = line.words.iter().skip(2).map(|word| word.text.clone());
    list(spec(context)).extend(written);
}

fn least(context: &mut ProxyContext<'_>, line: &Line, place: fn(&mut CompressionSpec) -> &mut u64) {
    let name = line.text(1);
    let Some(word) = line.words.get(2).filter(|word| !word.text.is_empty()) else {
        context.report.alert(line.span(2), format!("'{name}' expects an integer argument."));
        return;
    };
    match units::size(&word.text, u64::from(u32::MAX)) {
        Ok(size) => *place(spec(context)) = size,
        Err(error) => {
            let message = format!("unexpected '{}' after size passed to '{name}'", error.rest);
            context.report.alert(word.span, message);
        }
    }
}

fn offload(context: &mut ProxyContext<'_>, line: &Line) {
    if context.holder.section == Section::Defaults {
        context.report.warning(line.span(0), "'compression' : 'offload' ignored in 'defaults' section.");
    } else {
        spec(context).offload = true;
    }
}

fn direction(context: &mut ProxyContext<'_>, line: &Line) {
    let direction = match line.text(2) {
        "request" => CompressionDirection::Request,
        "response" => CompressionDirection::Response,
        "both" => CompressionDirection::Both,
        _ => {
            context.report.alert(line.span(2), "'compression' expects 'request', 'response', or 'both'.");
            return;
        }
    };
    spec(context).direction = direction;
}
