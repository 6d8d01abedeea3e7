//! Certificates of a frontend (section 4.2, "ssl-f-use").

use super::{ProxyContext, ProxyKeyword, removed, supported};
use crate::document::Line;
use crate::keyword::crt_list;
use crate::keyword::place::places::FRONT_SECTION;
use crate::spec::UsedCertificateSpec;

/// Every keyword of the family.
pub(super) const TABLE: &[ProxyKeyword] = &[
    supported(
        FRONT_SECTION,
        "ssl-f-use",
        "crt <file> [<option> <value>]...",
        "Certificate for all \"ssl\" bind lines of the frontend.",
        ssl_f_use,
    ),
    removed("crt", "<file>", "Former name of ssl-f-use; removed from HAProxy 3.5.", "unknown keyword 'crt'."),
];

fn ssl_f_use(context: &mut ProxyContext<'_>, line: &Line) {
    let used = UsedCertificateSpec {
        span: line.whole(),
        words: line.arguments().to_vec(),
        folder: context.around.paths.folder(line.span(0), context.around.sources),
    };
    let place = context.around.place(line.span(0));
    match crt_list::used(&used, &place, &crate::spec::BindTlsSpec::default()) {
        Ok(_) => context.draft.spec.used_certificates.push(used),
        Err((span, message)) => context.report.alert(span, message),
    }
}
