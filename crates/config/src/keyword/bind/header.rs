//! Headers that a proxy in front sends before the client's first bytes (section 5.1).

use super::{BindContext, BindOption, supported};
use crate::document::Word;
use crate::keyword::argument::{Arity, leading_number};

/// Every keyword of the family.
pub(super) const TABLE: &[BindOption] = &[
    supported(Arity::None, "accept-proxy", "", "Expects a PROXY protocol header.", accept_proxy),
    supported(
        Arity::One,
        "accept-netscaler-cip",
        "<magic>",
        "Expects NetScaler's client address header.",
        accept_netscaler_cip,
    ),
];

fn accept_proxy(context: &mut BindContext<'_>, _: &Word, _: Option<&Word>) {
    context.draft.listening.accept_proxy = true;
}

fn accept_netscaler_cip(context: &mut BindContext<'_>, keyword: &Word, value: Option<&Word>) {
    let Some(word) = value else {
        context.error(keyword.span, "'accept-netscaler-cip' : missing value");
        return;
    };
    // The number is truncated to 32 bits, its size in the header.
    match leading_number(&word.text).0 as u32 {
        0 => context.error(word.span, "'accept-netscaler-cip' : invalid value 0, must be >= 0"),
        magic => context.draft.listening.netscaler_cip = Some(magic),
    }
}
