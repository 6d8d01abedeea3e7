//! How certificate files are found and completed (section 3.1). Must never open one.

use super::GlobalContext;
use crate::document::Line;
use crate::span::Spanned;
use crate::spec::ExtraFilesSpec;

pub(super) fn issuers_chain(context: &mut GlobalContext<'_>, line: &Line) {
    if line.text(1).is_empty() {
        let message = "global statement 'issuers-chain-path' expects a directory path as an argument.";
        context.report.alert(line.span(1), message);
        return;
    }
    let full = context.around.paths.full(line.text(1), line.span(1), context.around.sources);
    context.spec.tls.issuers_chain = Some(Spanned::new(full.into_owned(), line.span(1)));
}

pub(super) fn extra_del_ext(context: &mut GlobalContext<'_>, _: &Line) {
    context.spec.tls.extra_files.replaces_extension = true;
}

pub(super) fn extra_files(context: &mut GlobalContext<'_>, line: &Line) {
    let replaces_extension = context.spec.tls.extra_files.replaces_extension;
    let mut files = ExtraFilesSpec { replaces_extension, ..ExtraFilesSpec::NONE };
    let words = line.arguments();
    for word in words {
        match word.text.as_str() {
            "none" | "all" if words.len() > 1 => {
                let message = "'ssl-load-extra-files' 'none' and 'all' can be only used alone";
                context.report.alert(word.span, message);
                return;
            }
            "none" => {}
            "all" => files = ExtraFilesSpec { replaces_extension, ..ExtraFilesSpec::default() },
            "bundle" => files.bundle = true,
            "sctl" => files.sctl = true,
            "ocsp" => files.ocsp = true,
            "issuer" => files.issuer = true,
            "key" => files.key = true,
            _ => {
                expect_files(context, word.span);
                return;
            }
        }
    }
    if words.is_empty() {
        expect_files(context, line.span(1));
        return;
    }
    context.spec.tls.extra_files = files;
}

fn expect_files(context: &mut GlobalContext<'_>, span: crate::span::Span) {
    let message = "'ssl-load-extra-files' expects one or multiple arguments (none, all, bundle, sctl, ocsp, issuer).";
    context.report.alert(span, message);
}

pub(super) fn skip_self_issued(context: &mut GlobalContext<'_>, _: &Line) {
    context.spec.tls.skips_self_issued = true;
}

pub(super) fn passphrase_command(context: &mut GlobalContext<'_>, line: &Line) {
    let words = line.arguments();
    if words.first().is_none_or(|word| word.text.is_empty()) {
        let message = "global statement 'ssl-passphrase-cmd' expects a command line to a passphrase-providing tool \
                       (script/binary...) and its arguments.";
        context.report.warning(line.span(1), message);
        return;
    }
    context.spec.tls.passphrase_command = words.iter().map(|word| word.text.clone()).collect();
}
