//! A format, ready to render. Must never allocate while it renders, beyond what the line itself needs.

use super::alias::Alias;
use super::compile::{FormatError, Item, items};
use super::record::{Endpoint, Record};
use config::spec::{LogFormatSpec, Mode};

/// A log format, compiled.
#[derive(Debug, Clone, PartialEq)]
pub struct LogFormat {
    shape: Shape,
}

#[derive(Debug, Clone, PartialEq)]
enum Shape {
    /// One for every line.
    One(Box<[Item]>),
    /// The default format (section 8.2.1): of a client on a UNIX socket only the socket can be told.
    Connect { inet: Box<[Item]>, unix: Box<[Item]> },
}

impl LogFormat {
    /// `option tcplog` (section 8.2.2).
    pub const TCP: &str = "%ci:%cp [%t] %ft %b/%s %Tw/%Tc/%Tt %B %ts %ac/%fc/%bc/%sc/%rc %sq/%bq";
    /// `option tcplog clf` (section 8.2.2, with the quotes that HAProxy really prints).
    pub const TCP_CLF: &str = "%{+Q}o %{-Q}ci - - [%T] \"TCP \" 000 %B \"\" \"\" %cp %ms %ft %b %s %Th %Tw %Tc %Tt %U \
                               %ts-- %ac %fc %bc %sc %rc %sq %bq \"\" \"\" ";
    /// `option httpslog` (section 8.2.4): with the values that its expressions have where no TLS is spoken.
    pub const HTTPS: &str = "%ci:%cp [%tr] %ft %b/%s %TR/%Tw/%Tc/%Tr/%Ta %ST %B %CC %CS %tsc %ac/%fc/%bc/%sc/%rc \
                             %sq/%bq %hr %hs %{+Q}r 0/-/-/-/0 -/%sslv/%sslc";
    /// `option httplog` (section 8.2.3).
    pub const HTTP: &str = "%ci:%cp [%tr] %ft %b/%s %TR/%Tw/%Tc/%Tr/%Ta %ST %B %CC %CS %tsc %ac/%fc/%bc/%sc/%rc \
                            %sq/%bq %hr %hs %{+Q}r";
    /// `option httplog clf` (section 8.2.3).
    pub const HTTP_CLF: &str = "%{+Q}o %{-Q}ci - - [%trg] %r %ST %B \"\" \"\" %cp %ms %ft %b %s %TR %Tw %Tc %Tr %Ta \
                                %tsc %ac %fc %bc %sc %rc %sq %bq %CC %CS %hrl %hsl";

    /// Compiles the argument of `log-format`.
    pub fn compile(text: &str) -> Result<Self, FormatError> {
        Ok(Self { shape: Shape::One(items(text)?.into()) })
    }

    /// The format that a proxy's options ask for. Without a request there is nothing for the HTTP formats to show: in TCP
    /// mode their TCP counterparts take their place.
    ///
    /// # Errors
    /// What is wrong with a `log-format`.
    pub fn chosen(format: &LogFormatSpec, mode: Mode) -> Result<Self, FormatError> {
        match format {
            LogFormatSpec::Custom(text) => Self::compile(&text.value),
            predefined => Ok(Self::predefined(predefined, mode)),
        }
    }

    /// One of the formats that have a name; a custom one is taken for the default.
    pub fn predefined(format: &LogFormatSpec, mode: Mode) -> Self {
        let name = if mode == Mode::Http { "HTTP" } else { "TCP" };
        // A test compiles each of them.
        let known = |text: &str| items(text).unwrap_or_default().into_boxed_slice();
        let shape = match format {
            LogFormatSpec::Default | LogFormatSpec::Custom(_) => Shape::Connect {
                inet: known(&format!("Connect from %ci:%cp to %fi:%fp (%f/{name})")),
                unix: known(&format!("Connect to %ci:%cp (%f/{name})")),
            },
            LogFormatSpec::Tcp => Shape::One(known(Self::TCP)),
            LogFormatSpec::TcpClf => Shape::One(known(Self::TCP_CLF)),
            LogFormatSpec::Http | LogFormatSpec::Https if mode == Mode::Tcp => Shape::One(known(Self::TCP)),
            LogFormatSpec::HttpClf if mode == Mode::Tcp => Shape::One(known(Self::TCP_CLF)),
            LogFormatSpec::Http => Shape::One(known(Self::HTTP)),
            LogFormatSpec::HttpClf => Shape::One(known(Self::HTTP_CLF)),
            LogFormatSpec::Https => Shape::One(known(Self::HTTPS)),
        };
        Self { shape }
    }

    /// Whether a line can be complete only when the stream has ended. Others are written earlier: the default format
    /// when the connection is accepted (TCP) or the request's head has come (HTTP), custom ones when the connection to
    /// the server stands (TCP) or the answer's head has come (HTTP).
    pub fn waits_for_end(&self) -> bool {
        self.any(|alias| alias.at_end)
    }

    /// Whether this is the default format, which is written before the others.
    pub fn is_default(&self) -> bool {
        matches!(self.shape, Shape::Connect { .. })
    }

    /// Whether the alias of that name (without "%") stands in it.
    pub fn uses(&self, name: &str) -> bool {
        self.any(|alias| alias.name == name)
    }

    fn any(&self, mut wanted: impl FnMut(&Alias) -> bool) -> bool {
        let (Shape::One(items) | Shape::Connect { inet: items, .. }) = &self.shape;
        items.iter().any(|item| matches!(item, Item::Alias(alias, _) if wanted(alias)))
    }

    /// Appends the line, without header and final newline.
    pub fn render(&self, record: &Record<'_>, out: &mut Vec<u8>) {
        let items = match &self.shape {
            Shape::Connect { unix, .. } if matches!(record.client, Endpoint::Unix(_)) => unix,
            Shape::One(items) | Shape::Connect { inet: items, .. } => items,
        };
        render_items(items, record, out);
    }
}

fn render_items(items: &[Item], record: &Record<'_>, out: &mut Vec<u8>) {
    // No separator at the start, nor behind another one.
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
            Item::Alias(alias, flags) => {
                let before = out.len();
                (alias.render)(record, *flags, out);
                separated &= out.len() == before;
            }
        }
    }
}
