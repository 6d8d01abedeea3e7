//! `cookie` and `dynamic-cookie-key` (configuration manual, section 4.2). Must never interpret cookies of clients.

use super::{ProxyContext, ProxyKeyword, supported};
use crate::diagnostic::{Diagnostic, Form};
use crate::document::{Line, Word};
use crate::keyword::place::places::BACK;
use crate::span::{Span, Spanned};
use crate::spec::{CookieMode, CookieSpec};
use crate::units::{self, TimeError, TimeUnit};

/// Every keyword of the family.
pub(super) const TABLE: &[ProxyKeyword] = &[
    supported(BACK, "cookie", "<name> [<option>...]", "Persistence by a cookie.", cookie),
    supported(BACK, "dynamic-cookie-key", "<key>", "Secret key of dynamic cookies.", dynamic_key),
];

const OPTIONS: &str = "'cookie' supports 'rewrite', 'insert', 'prefix', 'indirect', 'nocache', 'postonly', 'domain', \
                       'maxidle', 'dynamic', 'maxlife' and 'attr' options.";

fn dynamic_key(context: &mut ProxyContext<'_>, line: &Line) {
    match line.words.get(1) {
        Some(word) => context.draft.spec.persistence.dynamic_key = Some(word.text.clone()),
        None => context.report.alert(line.span(1), "'dynamic-cookie-key' expects <secret_key> as argument."),
    }
}

fn cookie(context: &mut ProxyContext<'_>, line: &Line) {
    let Some(name) = line.words.get(1).filter(|word| !word.text.is_empty()) else {
        context.report.alert(line.span(1), "'cookie' expects <cookie_name> as argument.");
        return;
    };
    let mut spec = CookieSpec { name: name.text.clone(), ..CookieSpec::default() };
    let mut modes = 0;
    let mut words = line.words.iter().skip(2);
    while let Some(word) = words.next() {
        match &*word.text {
            "rewrite" => (spec.mode, modes) = (Some(CookieMode::Rewrite), modes | 1),
            "insert" => (spec.mode, modes) = (Some(CookieMode::Insert), modes | 2),
            "prefix" => (spec.mode, modes) = (Some(CookieMode::Prefix), modes | 4),
            "indirect" => spec.indirect = true,
            "nocache" => spec.nocache = true,
            "postonly" => spec.postonly = true,
            "preserve" => spec.preserve = true,
            "httponly" => spec.httponly = true,
            "secure" => spec.secure = true,
            "dynamic" => spec.dynamic = true,
            "domain" => match argument(context, words.next(), word, "'domain' expects <domain> as argument.") {
                Some(domain) => add_domain(context, &mut spec, domain),
                None => return,
            },
            "maxidle" | "maxlife" => {
                let Some(seconds) = seconds(context, word, words.next()) else { return };
                *(if word.text == "maxidle" { &mut spec.max_idle } else { &mut spec.max_life }) = seconds;
            }
            "attr" => match argument(context, words.next(), word, "'attr' expects <value> as argument.") {
                Some(attribute) if is_attribute(context, attribute) => spec.attributes.push(attribute.text.clone()),
                _ => return,
            },
            _ => return context.report.alert(word.span, OPTIONS),
        }
    }
    if let Some(sentence) = contradiction(&spec, modes) {
        return context.report.alert(line.whole(), sentence);
    }
    context.draft.spec.persistence.cookie = Some(Spanned::new(spec, line.whole()));
}

/// Returns HAProxy's sentence about options that cannot be combined.
fn contradiction(spec: &CookieSpec, modes: u32) -> Option<&'static str> {
    if modes & 1 > 0 && spec.indirect {
        return Some("cookie 'rewrite' and 'indirect' modes are incompatible.");
    }
    if modes.count_ones() > 1 {
        return Some("cookie 'rewrite', 'insert' and 'prefix' modes are incompatible.");
    }
    let bare = modes & 2 == 0 && !spec.indirect;
    (spec.preserve && bare).then_some("cookie 'preserve' requires at least 'insert' or 'indirect'.")
}

fn tight(context: &mut ProxyContext<'_>, span: Span, message: impl Into<String>) {
    context.report.push(Diagnostic::alert(span, message).with_form(Form::ParsingTight));
}

fn argument<'l>(
    context: &mut ProxyContext<'_>,
    word: Option<&'l Word>,
    option: &Word,
    message: &str,
) -> Option<&'l Word> {
    let word = word.filter(|word| !word.text.is_empty());
    if word.is_none() {
        tight(context, option.span, message);
    }
    word
}

fn add_domain(context: &mut ProxyContext<'_>, spec: &mut CookieSpec, domain: &Word) {
    let text = &domain.text;
    if !text.starts_with('.') && !text.contains('.') {
        let message = format!(
            "domain '{text}' contains no embedded dot, this configuration may not work properly (see RFC6265#5.2.3)."
        );
        context.report.push(Diagnostic::warning(domain.span, message).with_form(Form::ParsingTight));
    }
    let permitted = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-' | '_');
    if let Some(bad) = text.chars().find(|letter| !permitted(*letter)) {
        tight(context, domain.span, format!("character '{bad}' is not permitted in domain name '{text}'."));
        return;
    }
    spec.domains.push(text.clone());
}

fn seconds(context: &mut ProxyContext<'_>, option: &Word, word: Option<&Word>) -> Option<u32> {
    let name = &option.text;
    let what = if name == "maxidle" { "<idletime>" } else { "<lifetime>" };
    let message = format!("'{name}' expects {what} in seconds as argument.");
    let word = argument(context, word, option, &message)?;
    let message = match units::time(&word.text, TimeUnit::Seconds) {
        Ok(time) => return Some(u32::try_from(time.value).unwrap_or(u32::MAX)),
        Err(TimeError::Unexpected(found)) => format!("unexpected character '{found}' in argument to <{name}>."),
        Err(TimeError::Empty) => format!("unexpected character '' in argument to <{name}>."),
        Err(_) => format!(
            "timer overflow in argument <{}> to <{name}>, maximum value is 2147483647 s (~68 years).",
            word.text
        ),
    };
    tight(context, word.span, message);
    None
}

fn is_attribute(context: &mut ProxyContext<'_>, attribute: &Word) -> bool {
    let Some(byte) = attribute.text.bytes().find(|byte| byte.is_ascii_control() || *byte == b';') else {
        return true;
    };
    tight(context, attribute.span, format!("character '%x{byte:02X}' is not permitted in attribute value."));
    false
}
