//! Sample expressions (configuration manual, section 7.3): a fetch followed by converters, parsed once and evaluated
//! often. Must never depend on what a fetch or a converter does.

mod argument;
mod syntax;
mod token_algorithm;

pub(crate) use argument::to_variable;
pub use argument::{Argument, Arguments, Kind, Signature};

use crate::condition::Acl;
use crate::convert::{self, Convert, Converter};
use crate::fetch::{self, Fetch, SampleOf, SampleVisitor};
use crate::key::Keys;
use crate::pattern::{self, Content, ListName, Lookup, Method, Use};
use crate::rows::RowRef;
use crate::sample::{Cast, Context, EvalPlace, Meter, Sink, Type, Value, cast};
use crate::variable::Variable;
use crate::vocabulary::Vocabulary;
use config::suggest::nearest;
use std::any::Any;
use std::cell::RefCell;
use std::net::IpAddr;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use syntax::SyntaxError;
pub use syntax::{Call, calls};
pub use token_algorithm::TokenAlgorithmUse;

/// Resolves the names in arguments.
pub trait Names {
    /// A frontend's index.
    fn frontend(&self, name: &str) -> Option<usize>;
    /// A backend's index.
    fn backend(&self, name: &str) -> Option<usize>;
    /// Resolves a server, written as `backend/server` or as a server of the current backend, to the indices of both.
    ///
    /// # Errors
    /// HAProxy's message about the missing one.
    fn server(&self, name: &str) -> Result<(usize, usize), String>;
    fn sink(&self, name: &str) -> Option<Sink> {
        let _ = name;
        None
    }
    /// The known fetches and converters.
    fn vocabulary(&self) -> &Vocabulary;
    /// A `userlist`'s index.
    fn userlist(&self, name: &str) -> Option<usize>;
    /// A stick table's index.
    fn table(&self, name: &str) -> Option<usize> {
        let _ = name;
        None
    }
    /// The index of a limit, written as `store/limit`.
    fn limit(&self, name: &str) -> Option<usize> {
        let _ = name;
        None
    }
    /// Whether the `userlist` of that name has that group.
    fn has_group(&self, list: &str, group: &str) -> bool {
        let _ = (list, group);
        true
    }
    /// The proxy that contains the expression.
    fn current(&self) -> Option<usize>;
    /// The name of that proxy.
    fn current_name(&self) -> Option<&str> {
        None
    }
    /// Reads a pattern file.
    ///
    /// # Errors
    /// The file cannot be read.
    fn read_file(&self, path: &str) -> Result<Vec<u8>, String>;

    /// Resolves a host name.
    fn resolve(&self, host: &str) -> Option<IpAddr> {
        let _ = host;
        None
    }

    /// The pattern lists loaded so far.
    fn lists(&self) -> Rc<RefCell<pattern::Registry>> {
        Rc::default()
    }

    /// The keys loaded so far.
    fn keys(&self) -> Rc<RefCell<Keys>> {
        Rc::default()
    }

    /// Records that a fetch is named that never has a sample, and why.
    fn note_valueless(&self, _fetch: &str, _why: &str) {}

    /// Records how the line uses the algorithm of a signed token.
    fn note_token_algorithm(&self, _: TokenAlgorithmUse<'_>) {}

    /// The position of the line being parsed.
    fn line(&self) -> pattern::ListLine {
        pattern::ListLine::default()
    }

    /// Loads a pattern list and returns a lookup in it (configuration manual, section 2.7).
    ///
    /// # Errors
    /// HAProxy's message when it cannot be read or an entry is invalid.
    fn list(
        &self,
        name: &str,
        usage: Use,
        method: Method,
        ignore_case: bool,
        content: Content,
    ) -> Result<Lookup, String> {
        let read = || match ListName::parse(name) {
            ListName::Virtual(_) => Ok(Vec::new()),
            ListName::Optional(path) => Ok(self.read_file(path).unwrap_or_default()),
            ListName::File(path) => self.read_file(path).map_err(|_| format!("failed to open pattern file <{path}>")),
        };
        let lists = self.lists();
        let mut lists = lists.borrow_mut();
        let list = lists.file(ListName::parse(name).reference(), usage, self.line(), read)?;
        lists.lookup(list, method, ignore_case, content).map_err(|(at, why)| {
            let line = lists.line(list, at);
            // Further lines show the place in the entry.
            let (why, rest) = why.split_at(why.find('\n').unwrap_or(why.len()));
            format!("{why} at line {line} of file '{name}'{rest}")
        })
    }

    /// Returns the ACL of that name, if it is defined above.
    fn acl(&self, _: &str) -> Option<Arc<Acl>> {
        None
    }

    /// Records the name of a variable that the configuration sets or reads.
    fn declare(&self, _: &Variable) {}

    /// Requests details of TLS handshakes that are recorded only on request: bits of [`tls::details::DetailSet`].
    fn want_of_handshakes(&self, _bits: u8) {}

    /// Whether the line is in a `defaults` section.
    fn is_inherited(&self) -> bool {
        false
    }
}

/// The context of a check of arguments.
pub struct Checking<'a> {
    /// Resolves names.
    pub names: &'a dyn Names,
    /// The place of the expression.
    pub place: EvalPlace,
    /// The input type of a converter.
    pub input: Type,
}

/// Checks the arguments of a row and compiles them for its evaluation.
pub type Check = fn(&mut Arguments, &Checking<'_>) -> Result<(), String>;

/// Why an expression is rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpressionError {
    /// HAProxy's message.
    pub message: String,
    /// A suggestion for correcting it.
    pub hint: Option<String>,
    /// The range of the text in error, in bytes.
    pub at: Range<usize>,
    /// The part in error.
    pub part: Part,
}

/// A part of an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The fetch.
    Fetch,
    /// A converter.
    Converter,
}

/// A fetch with its converters.
#[derive(Debug, Clone)]
pub struct Expression {
    text: Box<str>,
    fetch: RowRef<Fetch>,
    eval: SampleOf,
    each: Option<SampleVisitor>,
    arguments: Arguments,
    steps: Box<[ConverterCall]>,
    output: Type,
}

/// A converter with its arguments, and the cast of its input.
#[derive(Debug, Clone)]
struct ConverterCall {
    cast: Cast,
    converter: RowRef<Converter>,
    eval: Convert,
    arguments: Arguments,
}

/// Converters without a fetch: the caller supplies the sample.
#[derive(Debug, Clone)]
pub struct Conversion {
    text: Box<str>,
    steps: Box<[ConverterCall]>,
}

impl PartialEq for ConverterCall {
    /// For calls of equal text: a row may have been registered again, and names may refer to other values.
    fn eq(&self, other: &Self) -> bool {
        self.converter.is(&other.converter) && self.arguments == other.arguments
    }
}

impl PartialEq for Conversion {
    /// The same text may have another meaning in another configuration: the values that its names refer to must be
    /// equal, too.
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text && self.steps == other.steps
    }
}

impl Conversion {
    /// Parses a list of converters whose input has that type.
    ///
    /// # Errors
    /// The list is invalid.
    pub fn parse(text: &str, input: Type, place: EvalPlace, names: &dyn Names) -> Result<Self, ExpressionError> {
        let (steps, _, end) = read_steps(text, 0, input, place, names)?;
        if end < text.len() {
            return Err(error(format!("unexpected '{}' behind '{}'", &text[end..], &text[..end]), end..text.len()));
        }
        Ok(Self { text: text.into(), steps })
    }

    /// Converts a sample; `None` when a converter returns none.
    pub fn convert<'a>(&'a self, context: &Context<'a>, value: Value<'a>) -> Option<Value<'a>> {
        convert(&self.steps, context, value)
    }
}

/// Parses converters from a byte of the text on; the first has no comma before it. Returns the output type and the end
/// as well.
fn read_steps(
    text: &str,
    start: usize,
    input: Type,
    place: EvalPlace,
    names: &dyn Names,
) -> Result<(Box<[ConverterCall]>, Type, usize), ExpressionError> {
    let (mut at, mut output, mut steps) = (start, input, Vec::new());
    loop {
        let (found, end) = syntax::call(text, at).map_err(|broken| broken_converter(&broken))?;
        // HAProxy skips empty items between commas.
        if !found.name.is_empty() || found.arguments.is_some() {
            let step = step(&found, output, place, names).map_err(|fault| ExpressionError {
                at: at..end,
                part: Part::Converter,
                ..fault
            })?;
            output = step.converter.output;
            steps.push(step);
        }
        if !text[end..].starts_with(',') {
            return Ok((steps.into(), output, end));
        }
        at = end + 1;
    }
}

#[inline]
fn convert<'a>(steps: &'a [ConverterCall], context: &Context<'a>, mut value: Value<'a>) -> Option<Value<'a>> {
    for step in steps {
        if !context.spend(Meter::scan(value.size())) {
            return None;
        }
        value = (step.cast)(context, value)?;
        value = (step.eval)(context, value, &step.arguments)?;
    }
    Some(value)
}

impl PartialEq for Expression {
    /// Equal as for [`Conversion`].
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
            && self.fetch.is(&other.fetch)
            && self.arguments == other.arguments
            && self.steps == other.steps
    }
}

impl Eq for Expression {}

impl Expression {
    /// Parses the expression at the start of a text and returns the number of bytes read: all of them, unless text
    /// follows that no comma connects. The caller checks whether its fetch is available at `place`: HAProxy rejects
    /// such a rule, but only warns about such a condition.
    ///
    /// # Errors
    /// The expression is invalid.
    pub fn parse(text: &str, place: EvalPlace, names: &dyn Names) -> Result<(Self, usize), ExpressionError> {
        let (found, mut at) = syntax::call(text, 0).map_err(|broken| broken_fetch(&broken, names.vocabulary()))?;
        let fetch = find_fetch(&found, names.vocabulary())?;
        if let Some(why) = fetch::valueless_reason(&found.name) {
            names.note_valueless(&found.name, why);
        }
        let found = with_empty_text(found, &fetch.signature);
        let checking = Checking { names, place, input: Type::Any };
        let arguments = read_arguments(&found, &fetch.signature, fetch.check, &checking)
            .map_err(|fault| error(fault.of_fetch(&found.name), 0..at))?;
        let arguments = with_function(arguments, fetch.function());
        let (mut steps, mut output) = (Box::default(), fetch.output);
        if text[at..].starts_with(',') {
            (steps, output, at) = read_steps(text, at + 1, fetch.output, place, names)?;
        }
        let (eval, each) = (fetch.eval, fetch.each);
        Ok((Self { text: text[..at].into(), fetch, eval, each, arguments, steps, output }, at))
    }

    /// Parses a text that is exactly one expression.
    ///
    /// # Errors
    /// The expression is invalid.
    pub fn parse_all(text: &str, place: EvalPlace, names: &dyn Names) -> Result<Self, ExpressionError> {
        let (expression, end) = Self::parse(text, place, names)?;
        if end < text.len() {
            let message = match expression.steps.last() {
                None => "missing comma after fetch keyword".to_owned(),
                Some(step) => format!("missing comma after converter '{}'", step.converter.name),
            };
            return Err(ExpressionError { part: Part::Converter, ..error(message, end..text.len()) });
        }
        Ok(expression)
    }

    /// The expression as written.
    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn fetch(&self) -> &Fetch {
        &self.fetch
    }

    /// Whether the name of a proxy is omitted: the current one is meant.
    pub fn omits_proxy(&self) -> bool {
        let kinds = self.fetch.signature.kinds.iter().enumerate();
        let mut named = kinds.filter(|(_, kind)| matches!(kind, Kind::Frontend | Kind::Backend));
        named.any(|(at, _)| self.arguments.proxy(at).is_none())
    }

    /// Returns the values of that type that checks compiled into its arguments.
    pub(crate) fn made<T: 'static>(&self) -> impl Iterator<Item = &T> {
        let arguments = std::iter::once(&self.arguments).chain(self.steps.iter().map(|step| &step.arguments));
        arguments.flat_map(|arguments| (0..arguments.len()).filter_map(|index| arguments.made(index)))
    }

    /// Whether no converter follows the fetch.
    pub fn is_plain(&self) -> bool {
        self.steps.is_empty()
    }

    /// The type of its sample.
    pub fn output(&self) -> Type {
        self.output
    }

    /// Returns its sample; `None` when there is none.
    #[inline]
    pub fn evaluate<'a>(&'a self, context: &Context<'a>) -> Option<Value<'a>> {
        let value = (self.eval)(context, &self.arguments)?;
        self.convert(context, value)
    }

    /// Calls `take` with every sample until it returns true: a fetch may find several, such as the values of a header
    /// field. Returns whether `take` returned true.
    #[inline]
    pub fn each<'a>(&'a self, context: &Context<'a>, mut take: impl FnMut(Value<'a>) -> bool) -> bool {
        match self.each {
            Some(each) => self.each_of(each, context, &mut take),
            None => self.evaluate(context).is_some_and(take),
        }
    }

    fn each_of<'a>(
        &'a self,
        each: SampleVisitor,
        context: &Context<'a>,
        take: &mut dyn FnMut(Value<'a>) -> bool,
    ) -> bool {
        each(context, &self.arguments, &mut |value| self.convert(context, value).is_some_and(&mut *take))
    }

    #[inline]
    fn convert<'a>(&'a self, context: &Context<'a>, value: Value<'a>) -> Option<Value<'a>> {
        convert(&self.steps, context, value)
    }
}

fn error(message: String, at: Range<usize>) -> ExpressionError {
    ExpressionError { message, hint: None, at, part: Part::Fetch }
}

/// Returns the error of a fetch with unreadable arguments; that of an unknown name precedes it.
fn broken_fetch(broken: &SyntaxError, vocabulary: &Vocabulary) -> ExpressionError {
    let SyntaxError { name, message, at } = broken;
    let call = Call { name: name.clone(), arguments: None, tails: Vec::new(), at: 0 };
    if let Err(unknown) = find_fetch(&call, vocabulary) {
        return unknown;
    }
    error(format!("fetch method '{name}' : {message}"), 0..*at)
}

fn broken_converter(broken: &SyntaxError) -> ExpressionError {
    let SyntaxError { name, message, at } = broken;
    ExpressionError { part: Part::Converter, ..error(format!("converter '{name}' : {message}"), *at..*at) }
}

fn find_fetch(call: &Call, vocabulary: &Vocabulary) -> Result<RowRef<Fetch>, ExpressionError> {
    if call.name.is_empty() {
        return Err(error("missing fetch method".to_owned(), 0..0));
    }
    let Some(found) = vocabulary.fetch(&call.name) else {
        if vocabulary.awaits_fetch(&call.name) {
            let why = fetch::waiting_reason(&call.name).unwrap_or("is not supported yet by Weir");
            let message = format!("fetch method '{}' {why}", call.name);
            return Err(error(message, 0..call.name.len()));
        }
        let known = nearest(&call.name, vocabulary.fetch_names());
        return Err(ExpressionError {
            message: format!("unknown fetch method '{}'", call.name),
            hint: known.map(|known| format!("did you mean '{known}'?")),
            at: 0..call.name.len(),
            part: Part::Fetch,
        });
    };
    Ok(found)
}

/// Empty parentheses pass an empty name to a fetch with an optional name: `hdr()` is every field, `hdr` none.
fn with_empty_text(mut call: Call, signature: &Signature) -> Call {
    if let Some(arguments) = call.arguments.as_mut().filter(|arguments| arguments.is_empty())
        && signature.required == 0
        && signature.kinds.first() == Some(&Kind::Str)
    {
        arguments.push(String::new());
    }
    call
}

fn step(call: &Call, input: Type, place: EvalPlace, names: &dyn Names) -> Result<ConverterCall, ExpressionError> {
    let Some(converter) = names.vocabulary().converter(&call.name) else {
        if names.vocabulary().awaits_converter(&call.name) {
            let why = convert::waiting_reason(&call.name).unwrap_or("is not supported yet by Weir");
            return Err(error(format!("converter '{}' {why}", call.name), 0..0));
        }
        let known = nearest(&call.name, names.vocabulary().converter_names());
        let hint = known.map(|known| format!("did you mean '{known}'?"));
        return Err(ExpressionError { hint, ..error(format!("unknown converter '{}'", call.name), 0..0) });
    };
    let Some(cast) = cast(input, converter.input) else {
        return Err(error(format!("converter '{}' cannot be applied", call.name), 0..0));
    };
    let checking = Checking { names, place, input };
    let arguments = read_arguments(call, &converter.signature, converter.check, &checking)
        .map_err(|fault| error(fault.of_converter(&call.name), 0..0))?;
    let arguments = with_function(arguments, converter.function());
    Ok(ConverterCall { cast, eval: converter.eval, converter, arguments })
}

/// Appends the function of a registered row to its arguments.
fn with_function(arguments: Arguments, function: Option<Arc<dyn Any + Send + Sync>>) -> Arguments {
    match function {
        Some(function) => arguments.with_function(function),
        None => arguments,
    }
}

/// An error in arguments.
enum Fault {
    /// The nth, from 1, is invalid.
    Unreadable(usize, String),
    /// The row's check rejects them.
    Refused(String),
}

impl Fault {
    fn of_fetch(&self, name: &str) -> String {
        match self {
            Self::Unreadable(_, why) => format!("fetch method '{name}' : {why}"),
            Self::Refused(why) => format!("invalid args in fetch method '{name}' : {why}"),
        }
    }

    fn of_converter(&self, name: &str) -> String {
        match self {
            Self::Unreadable(index, why) => format!("invalid arg {index} in converter '{name}' : {why}"),
            Self::Refused(why) => format!("invalid args in converter '{name}' : {why}"),
        }
    }
}

fn read_arguments(
    call: &Call,
    signature: &Signature,
    check: Option<Check>,
    checking: &Checking<'_>,
) -> Result<Arguments, Fault> {
    let written = match call.arguments.as_deref().unwrap_or_default() {
        // A required argument that is omitted counts as empty.
        [] if signature.required > 0 => &[String::new()],
        written => written,
    };
    if written.len() > signature.kinds.len() {
        let most = signature.kinds.len();
        let tail = call.tails.get(most).map_or("", String::as_str);
        // The message ends at the first blank.
        let tail = tail.split(' ').next().unwrap_or_default();
        return Err(Fault::Unreadable(most.max(1), format!("expected ')' before '{tail}'")));
    }
    let mut list = Vec::with_capacity(signature.kinds.len());
    for (index, kind) in signature.kinds.iter().enumerate() {
        list.push(match written.get(index) {
            None => Argument::Absent,
            // An empty argument counts as omitted if it is optional or not a text.
            Some(text) if text.is_empty() && (index >= signature.required || *kind != Kind::Str) => {
                let is_text = matches!(kind, Kind::Regex | Kind::Frontend | Kind::Backend | Kind::Table);
                if index < signature.required && !is_text {
                    let why = format!("expected type '{}' at position {}, but got nothing", kind.name(), index + 1);
                    return Err(Fault::Unreadable(index + 1, why));
                }
                if *kind == Kind::Str { Argument::Str(Box::default()) } else { Argument::Absent }
            }
            Some(text) => argument::value(*kind, text, checking.names)
                .map_err(|why| Fault::Unreadable(index + 1, format!("{why} at position {}", index + 1)))?,
        });
    }
    if let Some(kind) = signature.kinds.get(written.len()).filter(|_| written.len() < signature.required) {
        let (got, wanted) = (written.len(), signature.required);
        let why = format!("missing arguments (got {got}/{wanted}), type '{}' expected", kind.name());
        return Err(Fault::Unreadable(got + 1, why));
    }
    let mut arguments = Arguments::new(list);
    if let Some(check) = check {
        check(&mut arguments, checking).map_err(Fault::Refused)?;
        // Variables that are only read are declared, too, for callers that set variables by name at run time.
        (0..arguments.len()).filter_map(|index| arguments.variable(index)).for_each(|one| checking.names.declare(one));
    }
    Ok(arguments)
}

#[cfg(test)]
pub(crate) mod tests;
