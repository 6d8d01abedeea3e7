//! A compiled log format. Must never allocate while rendering, beyond the memory of the line itself.

use super::compile::{FormatError, Item, Read, Site, Style, read};
use super::escape::{Classes, Flags, encoded};
use super::printer::{Form, Printer};
use super::purpose::Purpose;
use super::row::Alias;
use super::{cbor, json};
use crate::record::{Endpoint, Record};
use crate::sample::{Context, EvalPlace, Value};
use crate::{Expression, Names};
use config::spec::{LogFormatSpec, Mode};
use std::sync::{Arc, Mutex, PoisonError};

/// A compiled log format.
#[derive(Debug, Clone, PartialEq)]
pub struct LogFormat {
    shape: Shape,
    /// The purpose of its text.
    purpose: Purpose,
    /// The flags of the whole format.
    flags: Flags,
    /// It contains an alias: rendering needs a record.
    has_aliases: bool,
    /// It contains `%ID`.
    has_identifier: bool,
}

#[derive(Debug, Clone, PartialEq)]
enum Shape {
    /// One for every line.
    One(Items),
    /// The default format (section 8.2.1): for a client on a UNIX socket, it contains only the socket.
    Connect { inet: Items, unix: Items },
}

/// The parts of a format, shared by its clones.
type Items = Arc<[Item]>;

/// The parts of a predefined format, compiled once.
fn predefined_items(text: &str) -> Items {
    static KNOWN: Mutex<Vec<(Box<str>, Items)>> = Mutex::new(Vec::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, items)) = known.iter().find(|(own, _)| **own == *text) {
        return Arc::clone(items);
    }
    // A test compiles each of them.
    let items: Items = read(text, None, Purpose::Log).unwrap_or_default().items.into();
    known.push((text.into(), Arc::clone(&items)));
    items
}

impl LogFormat {
    /// `option tcplog` (section 8.2.2).
    pub const TCP: &str = "%ci:%cp [%t] %ft %b/%s %Tw/%Tc/%Tt %B %ts %ac/%fc/%bc/%sc/%rc %sq/%bq";
    /// `option tcplog clf` (section 8.2.2, with the quotes that HAProxy actually prints).
    pub const TCP_CLF: &str = "%{+Q}o %{-Q}ci - - [%T] \"TCP \" 000 %B \"\" \"\" %cp %ms %ft %b %s %Th %Tw %Tc %Tt %U \
                               %ts-- %ac %fc %bc %sc %rc %sq %bq \"\" \"\" ";
    /// `option httpslog` (section 8.2.4) with its expressions, for frontends with TLS.
    pub const HTTPS: &str = "%ci:%cp [%tr] %ft %b/%s %TR/%Tw/%Tc/%Tr/%Ta %ST %B %CC %CS %tsc %ac/%fc/%bc/%sc/%rc \
                             %sq/%bq %hr %hs %{+Q}r %[fc_err]/%[ssl_fc_err,hex]/%[ssl_c_err]/%[ssl_c_ca_err]/\
                             %[ssl_fc_is_resumed] %[ssl_fc_sni]/%sslv/%sslc";
    /// `option httpslog` with the values of its expressions on connections without TLS.
    pub const HTTPS_PLAIN: &str = "%ci:%cp [%tr] %ft %b/%s %TR/%Tw/%Tc/%Tr/%Ta %ST %B %CC %CS %tsc %ac/%fc/%bc/%sc/%rc \
                             %sq/%bq %hr %hs %{+Q}r 0/-/-/-/0 -/%sslv/%sslc";
    /// `option httplog` (section 8.2.3).
    pub const HTTP: &str = "%ci:%cp [%tr] %ft %b/%s %TR/%Tw/%Tc/%Tr/%Ta %ST %B %CC %CS %tsc %ac/%fc/%bc/%sc/%rc \
                            %sq/%bq %hr %hs %{+Q}r";
    /// `option httplog clf` (section 8.2.3).
    pub const HTTP_CLF: &str = "%{+Q}o %{-Q}ci - - [%trg] %r %ST %B \"\" \"\" %cp %ms %ft %b %s %TR %Tw %Tc %Tr %Ta \
                                %tsc %ac %fc %bc %sc %rc %sq %bq %CC %CS %hrl %hsl";

    /// Compiles a format without expressions.
    ///
    /// # Errors
    /// The format is invalid.
    pub fn compile(text: &str) -> Result<Self, FormatError> {
        Ok(Self::of(read(text, None, Purpose::Log)?, Purpose::Log))
    }

    /// Compiles the argument of `log-format`.
    ///
    /// # Errors
    /// The format is invalid.
    pub fn for_log(text: &str, names: &dyn Names) -> Result<Self, FormatError> {
        Self::for_rule(text, Purpose::Log, EvalPlace::Log, names)
    }

    /// Compiles a format that a rule at that place renders.
    ///
    /// # Errors
    /// The format is invalid.
    pub fn for_rule(text: &str, purpose: Purpose, place: EvalPlace, names: &dyn Names) -> Result<Self, FormatError> {
        Ok(Self::of(read(text, Some(Site { names, place, other: None }), purpose)?, purpose))
    }

    /// Compiles a format of a response that rules on requests and on responses may return.
    ///
    /// # Errors
    /// The format is invalid.
    pub fn for_error(text: &str, purpose: Purpose, names: &dyn Names) -> Result<Self, FormatError> {
        let (place, other) = (EvalPlace::FrontRequestHead, Some(EvalPlace::BackResponseHead));
        Ok(Self::of(read(text, Some(Site { names, place, other }), purpose)?, purpose))
    }

    fn of(read: Read, purpose: Purpose) -> Self {
        let Read { items, flags } = read;
        Self::shaped(Shape::One(items.into()), purpose, flags)
    }

    fn shaped(shape: Shape, purpose: Purpose, flags: Flags) -> Self {
        let (Shape::One(items) | Shape::Connect { inet: items, .. }) = &shape;
        let has_aliases = items.iter().any(|item| matches!(item, Item::Alias(..)));
        let has_identifier = items.iter().any(|item| matches!(item, Item::Alias(alias, _) if alias.name == "ID"));
        Self { shape, purpose, flags, has_aliases, has_identifier }
    }

    /// Returns the text if every line is the same: then nothing has to be rendered.
    pub fn constant(&self) -> Option<&[u8]> {
        match &self.shape {
            Shape::One(_) if form(self.flags) != Form::Plain => None,
            Shape::One(items) => match &**items {
                [] => Some(b""),
                [Item::Text(text)] => Some(text),
                _ => None,
            },
            Shape::Connect { .. } => None,
        }
    }

    /// Whether it contains an expression.
    pub fn has_expressions(&self) -> bool {
        self.expressions().next().is_some()
    }

    /// Whether it queries the kernel's state of a connection.
    pub fn asks_kernel(&self) -> bool {
        self.expressions().any(|expression| expression.fetch().asks_kernel)
    }

    pub fn expressions(&self) -> impl Iterator<Item = &Expression> {
        let (Shape::One(items) | Shape::Connect { inet: items, .. }) = &self.shape;
        items.iter().filter_map(|item| match item {
            Item::Expression(expression, _) => Some(&**expression),
            _ => None,
        })
    }

    /// Whether it contains an alias: rendering needs a record then.
    pub fn has_aliases(&self) -> bool {
        self.has_aliases
    }

    /// Returns the format selected by a proxy's options. The HTTP formats need a request: in TCP mode their TCP
    /// counterparts replace them.
    ///
    /// # Errors
    /// The `log-format` is invalid.
    pub fn chosen(format: &LogFormatSpec, mode: Mode) -> Result<Self, FormatError> {
        match format {
            LogFormatSpec::Custom(text) => Self::compile(&text.value),
            predefined => Ok(Self::predefined(predefined, mode)),
        }
    }

    /// Returns a predefined format; a custom one yields the default.
    pub fn predefined(format: &LogFormatSpec, mode: Mode) -> Self {
        let name = if mode == Mode::Http { "HTTP" } else { "TCP" };
        let shape = match format {
            LogFormatSpec::Default | LogFormatSpec::Custom(_) => Shape::Connect {
                inet: predefined_items(&format!("Connect from %ci:%cp to %fi:%fp (%f/{name})")),
                unix: predefined_items(&format!("Connect to %ci:%cp (%f/{name})")),
            },
            LogFormatSpec::Tcp => Shape::One(predefined_items(Self::TCP)),
            LogFormatSpec::TcpClf => Shape::One(predefined_items(Self::TCP_CLF)),
            LogFormatSpec::Http | LogFormatSpec::Https if mode == Mode::Tcp => Shape::One(predefined_items(Self::TCP)),
            LogFormatSpec::HttpClf if mode == Mode::Tcp => Shape::One(predefined_items(Self::TCP_CLF)),
            LogFormatSpec::Http => Shape::One(predefined_items(Self::HTTP)),
            LogFormatSpec::HttpClf => Shape::One(predefined_items(Self::HTTP_CLF)),
            LogFormatSpec::Https => Shape::One(predefined_items(Self::HTTPS_PLAIN)),
        };
        Self::shaped(shape, Purpose::Log, Flags::NONE)
    }

    /// Whether a line is complete only at the end of the stream. Others are written earlier: the default format when
    /// the connection is accepted (TCP) or the request head has been received (HTTP), custom ones when the connection
    /// to the server is established (TCP) or the response head has been received (HTTP).
    pub fn waits_for_end(&self) -> bool {
        self.any(|alias| alias.at_end) || self.expressions().any(|expression| expression.fetch().at_end)
    }

    /// Whether this is the default format, which is written before the others.
    pub fn is_default(&self) -> bool {
        matches!(self.shape, Shape::Connect { .. })
    }

    /// Whether it contains the unique identifier of a request.
    pub fn has_identifier(&self) -> bool {
        self.has_identifier
    }

    /// Whether it contains the alias of that name (without "%").
    pub fn uses(&self, name: &str) -> bool {
        self.any(|alias| alias.name == name)
    }

    fn any(&self, mut wanted: impl FnMut(&Alias) -> bool) -> bool {
        let (Shape::One(items) | Shape::Connect { inet: items, .. }) = &self.shape;
        items.iter().any(|item| matches!(item, Item::Alias(alias, _) if wanted(alias)))
    }

    /// Appends the line, without header and final newline. Expressions have no sample.
    pub fn render(&self, record: &Record<'_>, out: &mut Vec<u8>) {
        self.render_with(record, None, out);
    }

    /// Appends the line for a context; if it has no record, aliases print missing values.
    pub fn render_in(&self, context: &Context<'_>, out: &mut Vec<u8>) {
        let mut rendered = false;
        if self.has_identifier {
            // Generates the identifier, so that the record contains it.
            let _ = context.probes.unique_id();
        }
        if self.has_aliases() {
            context.probes.lend_record(&mut |record| {
                if !std::mem::replace(&mut rendered, true) {
                    self.render_with(record, Some(context), out);
                }
            });
        }
        if !rendered {
            self.render_with(&Record::default(), Some(context), out);
        }
    }

    /// Appends the line for a record and, for expressions, a context.
    pub fn render_with(&self, record: &Record<'_>, context: Option<&Context<'_>>, out: &mut Vec<u8>) {
        let items = match &self.shape {
            Shape::Connect { unix, .. } if matches!(record.client, Endpoint::Unix(_)) => unix,
            Shape::One(items) | Shape::Connect { inet: items, .. } => items,
        };
        match form(self.flags) {
            Form::Plain => render_items(items, record, context, self.purpose, out),
            form => self.render_encoded(form, items, record, context, out),
        }
    }

    /// Renders the whole format in an encoding: named items only.
    fn render_encoded(
        &self,
        form: Form,
        items: &[Item],
        record: &Record<'_>,
        context: Option<&Context<'_>>,
        out: &mut Vec<u8>,
    ) {
        let printable = form == Form::Cbor && !self.flags.contains(Flags::BINARY);
        let mut start = out.len();
        out.push(if form == Form::Cbor { cbor::MAP } else { b'{' });
        let mut first = true;
        for item in items {
            let (Item::Alias(_, style) | Item::Expression(_, style)) = item else { continue };
            let Some(name) = &style.name else { continue };
            if form == Form::Cbor {
                cbor::measured(out, cbor::TEXT, |out| out.extend_from_slice(name.as_bytes()));
            } else {
                out.extend_from_slice(if first { b"" } else { b", " });
                json::string(out, name.as_bytes(), false);
                out.extend_from_slice(b": ");
            }
            first = false;
            let before = out.len();
            if !render_value(item, style, form, record, context, out) && printable {
                // Unencoded output is not converted to hexadecimal.
                let raw = out.split_off(before);
                cbor::to_hexadecimal(out, start);
                out.extend_from_slice(&raw);
                start = out.len();
            }
        }
        out.push(if form == Form::Cbor { cbor::BREAK } else { b'}' });
        if printable {
            cbor::to_hexadecimal(out, start);
        }
    }
}

/// The encoding selected by the flags.
fn form(flags: Flags) -> Form {
    match () {
        () if flags.contains(Flags::JSON) => Form::Json,
        () if flags.contains(Flags::CBOR) => Form::Cbor,
        () => Form::Plain,
    }
}

/// Prints an item's value in an encoding. False: it was printed unencoded.
fn render_value(
    item: &Item,
    style: &Style,
    form: Form,
    record: &Record<'_>,
    context: Option<&Context<'_>>,
    out: &mut Vec<u8>,
) -> bool {
    let mut printer = Printer { out, flags: style.flags, form, cast: style.cast };
    match (item, context) {
        (Item::Alias(alias, _), _) => (alias.render)(record, &mut printer),
        (Item::Expression(expression, _), Some(context)) => {
            return printer.sample(context, expression.evaluate(context));
        }
        _ => printer.absent(),
    }
    true
}

/// Appends a sample's text; control characters are percent-encoded in a message head.
fn append(text: &[u8], purpose: Purpose, flags: Flags, out: &mut Vec<u8>) {
    let is_control = |byte: &u8| purpose.is_head() && ((*byte < 32 && *byte != b'\t') || *byte == 127);
    let is_escaped = |byte: &u8| flags.contains(Flags::ESCAPE) && matches!(byte, b'"' | b'\\' | b']');
    if !text.iter().any(|byte| is_control(byte) || is_escaped(byte)) {
        return out.extend_from_slice(text);
    }
    for byte in text {
        if is_control(byte) {
            out.push(b'%');
            out.extend_from_slice(&base::hex::upper(*byte));
        } else if is_escaped(byte) {
            out.extend_from_slice(&[b'\\', *byte]);
        } else {
            out.push(*byte);
        }
    }
}

/// Appends the sample of an expression as text.
fn render_expression(
    expression: &Expression,
    context: Option<&Context<'_>>,
    purpose: Purpose,
    flags: Flags,
    out: &mut Vec<u8>,
) {
    let binary = flags.contains(Flags::BINARY);
    let text = context.and_then(|context| match expression.evaluate(context)? {
        Value::Bin(bytes) if binary => Some(bytes),
        value => context.as_text(value),
    });
    let quote = flags.contains(Flags::QUOTE) && !purpose.is_head();
    match text {
        Some(text) if purpose != Purpose::Log || !text.is_empty() => {
            out.extend_from_slice(if quote { b"\"" } else { b"" });
            match purpose {
                Purpose::Log if !binary => encoded(out, text, Classes::NAME, flags),
                _ => append(text, purpose, flags, out),
            }
            out.extend_from_slice(if quote { b"\"" } else { b"" });
        }
        _ if purpose.is_head() => {}
        _ => Printer::plain(out, flags).absent(),
    }
}

fn render_items(
    items: &[Item],
    record: &Record<'_>,
    context: Option<&Context<'_>>,
    purpose: Purpose,
    out: &mut Vec<u8>,
) {
    // No separator at the start, nor after another one.
    let mut separated = true;
    for item in items {
        match item {
            Item::Text(text) => {
                out.extend_from_slice(text);
                separated = false;
            }
            Item::Space if separated => {}
            Item::Space => {
                out.push(b' ');
                separated = true;
            }
            Item::Alias(_, style) | Item::Expression(_, style) if form(style.flags) != Form::Plain => {
                let (form, start) = (form(style.flags), out.len());
                let is_encoded = render_value(item, style, form, record, context, out);
                if is_encoded && form == Form::Cbor && !style.flags.contains(Flags::BINARY) {
                    cbor::to_hexadecimal(out, start);
                }
                separated = false;
            }
            Item::Expression(expression, style) => {
                render_expression(expression, context, purpose, style.flags, out);
                separated = false;
            }
            Item::Alias(alias, style) => {
                let before = out.len();
                (alias.render)(record, &mut Printer::plain(out, style.flags));
                separated &= out.len() == before;
            }
        }
    }
}
