//! Algorithms of tokens (section 3.1).

use super::{GlobalContext, GlobalKeyword, supported};
use crate::document::Line;
use crate::spec::{TOKEN_ALGORITHMS, TOKEN_ENCODINGS};

/// Every keyword of the family.
pub(super) const TABLE: &[GlobalKeyword] = &[
    supported("jwt.decrypt_alg_list", "<list>", "Algorithms that JWT decryption accepts for keys.", algorithms),
    supported("jwt.decrypt_enc_list", "<list>", "Algorithms that JWT decryption accepts for content.", encodings),
    supported(
        "tune.jwt-none",
        "{ reject | accept }",
        "Weir's own: whether 'jwt_verify' accepts 'none' as an algorithm from a variable; default accept.",
        unsigned,
    ),
];

fn algorithms(context: &mut GlobalContext<'_>, line: &Line) {
    let bits = list(context, line, TOKEN_ALGORITHMS);
    context.spec.tokens.algorithms = bits.or(context.spec.tokens.algorithms);
}

fn encodings(context: &mut GlobalContext<'_>, line: &Line) {
    let bits = list(context, line, TOKEN_ENCODINGS);
    context.spec.tokens.encodings = bits.or(context.spec.tokens.encodings);
}

fn unsigned(context: &mut GlobalContext<'_>, line: &Line) {
    const NAME: &str = "tune.jwt-none";
    if context.report.too_many(line, 2, NAME) {
        return;
    }
    context.spec.tokens.rejects_unsigned = match line.text(1) {
        "reject" => true,
        "accept" => false,
        _ => return context.report.alert(line.span(1), format!("'{NAME}' expects 'reject' or 'accept'.")),
    };
}

/// Parses names separated by colons: `ALL` selects all of them, `!` removes one.
fn list(context: &mut GlobalContext<'_>, line: &Line, names: &[&str]) -> Option<u32> {
    let word = line.words.get(1)?;
    let mut bits = 0;
    for item in word.text.split(':').filter(|item| !item.is_empty()) {
        let name = item.strip_prefix('!').unwrap_or(item);
        match names.iter().position(|known| *known == name) {
            _ if item == "ALL" => bits = (1 << names.len()) - 1,
            Some(at) if item.len() > name.len() => bits &= !(1 << at),
            Some(at) => bits |= 1 << at,
            None => {
                context.report.alert(word.span, format!("Unknown algorithm/encoding {name}"));
                return None;
            }
        }
    }
    Some(bits)
}
