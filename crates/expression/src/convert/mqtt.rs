//! Converters of MQTT 3.1, 3.1.1 and 5.0: the first packet of either side, CONNECT and CONNACK. Must never read beyond
//! a packet's length.

use super::Converter;
use crate::sample::{Context, MissingInput, Type, Value};
use crate::{Argument, Arguments, Checking, Kind, Signature};
use std::fmt::Write as _;
use std::sync::Arc;

/// Every converter of the family.
pub const TABLE: &[Converter] = &[
    Converter::new(
        "mqtt_field_value",
        Signature::new(2, &[Kind::Str, Kind::Str]),
        Type::Bin,
        Type::Str,
        "Field of an MQTT CONNECT or CONNACK packet, by name or by property number.",
        field_value,
    )
    .checked(check_field),
    Converter::new(
        "mqtt_is_valid",
        Signature::NONE,
        Type::Bin,
        Type::Bool,
        "Whether the data starts with a valid MQTT CONNECT or CONNACK packet.",
        |context, value, _| {
            let is_valid = match packet(value.bytes()?) {
                Packet::Missing => return context.missing(MissingInput::Bytes),
                Packet::Connect(body) => Connect::read(body).is_some(),
                Packet::Acknowledgement(body) => Acknowledgement::read(body).is_some(),
                Packet::Other => false,
            };
            context.settled();
            Some(Value::Bool(is_valid))
        },
    ),
];

/// The encoding of a property.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Coding {
    Byte,
    Short,
    Long,
    Text,
    /// Two strings; may be repeated.
    Pair,
}

/// Properties of CONNECT, of its will, and of CONNACK (MQTT 5.0, section 2.2.2.2).
const OF_CONNECT: &[(u8, Coding)] = &[
    (17, Coding::Long),
    (33, Coding::Short),
    (39, Coding::Long),
    (34, Coding::Short),
    (25, Coding::Byte),
    (23, Coding::Byte),
    (21, Coding::Text),
    (22, Coding::Text),
    (38, Coding::Pair),
];
const OF_WILL: &[(u8, Coding)] = &[
    (24, Coding::Long),
    (1, Coding::Byte),
    (2, Coding::Long),
    (3, Coding::Text),
    (8, Coding::Text),
    (9, Coding::Text),
    (38, Coding::Pair),
];
const OF_ACKNOWLEDGEMENT: &[(u8, Coding)] = &[
    (17, Coding::Long),
    (33, Coding::Short),
    (36, Coding::Byte),
    (37, Coding::Byte),
    (39, Coding::Long),
    (18, Coding::Text),
    (34, Coding::Short),
    (31, Coding::Text),
    (40, Coding::Byte),
    (41, Coding::Byte),
    (42, Coding::Byte),
    (19, Coding::Short),
    (26, Coding::Text),
    (28, Coding::Text),
    (21, Coding::Text),
    (22, Coding::Text),
    (38, Coding::Pair),
];

/// The requested field of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MqttField {
    Flags,
    Version,
    ReasonCode,
    ProtocolName,
    Client,
    WillTopic,
    WillPayload,
    User,
    Password,
    KeepAlive,
    Property(u8),
}

/// The packet type and the requested field.
struct Query {
    of_connect: bool,
    wanted: MqttField,
}

fn check_field(arguments: &mut Arguments, _: &Checking<'_>) -> Result<(), String> {
    let (kind, name) = (arguments.utf8(0).unwrap_or_default(), arguments.utf8(1).unwrap_or_default());
    let lower = kind.to_ascii_lowercase();
    let wanted = match lower.as_str() {
        "connect" | "1" => connect_field(name),
        "connack" | "2" => acknowledgement_field(name),
        other if other.parse::<u8>().is_ok_and(|kind| kind < 16) => None,
        _ => return Err(format!("Unknown MQTT type '{kind}'")),
    };
    let wanted = wanted.ok_or_else(|| format!("Unknown MQTT field name '{name}' for packet type '{kind}'"))?;
    let of_connect = matches!(lower.as_str(), "connect" | "1");
    arguments.set(0, Argument::Made(Arc::new(Query { of_connect, wanted })));
    Ok(())
}

fn connect_field(name: &str) -> Option<MqttField> {
    Some(match name {
        "flags" => MqttField::Flags,
        "protocol_name" => MqttField::ProtocolName,
        "protocol_version" => MqttField::Version,
        "client_identifier" => MqttField::Client,
        "will_topic" => MqttField::WillTopic,
        "will_payload" => MqttField::WillPayload,
        "username" => MqttField::User,
        "password" => MqttField::Password,
        "keepalive" => MqttField::KeepAlive,
        other => property(other, &[OF_CONNECT, OF_WILL])?,
    })
}

fn acknowledgement_field(name: &str) -> Option<MqttField> {
    Some(match name {
        "flags" => MqttField::Flags,
        "protocol_version" => MqttField::Version,
        "reason_code" => MqttField::ReasonCode,
        other => property(other, &[OF_ACKNOWLEDGEMENT])?,
    })
}

fn property(name: &str, tables: &[&[(u8, Coding)]]) -> Option<MqttField> {
    let number: u8 = name.parse().ok()?;
    let is_known = tables.iter().any(|table| table.iter().any(|(known, _)| *known == number));
    is_known.then_some(MqttField::Property(number))
}

/// The packet at the start of the bytes, without its fixed header.
enum Packet<'a> {
    Missing,
    Connect(&'a [u8]),
    Acknowledgement(&'a [u8]),
    Other,
}

fn packet(bytes: &[u8]) -> Packet<'_> {
    let (Some((kind, mut rest)), 2..) = (bytes.split_first(), bytes.len()) else {
        return Packet::Missing;
    };
    // The packet type determines the flags; those of PUBLISH vary.
    let flags_fit = match kind >> 4 {
        0 => false,
        3 => true,
        6 | 8 | 10 => kind & 15 == 2,
        _ => kind & 15 == 0,
    };
    if !flags_fit {
        return Packet::Other;
    }
    if rest.iter().take(4).all(|byte| *byte >= 0x80) {
        return if rest.len() < 4 { Packet::Missing } else { Packet::Other };
    }
    let length = take_length(&mut rest).unwrap_or(0);
    match (rest.get(..length), kind) {
        (None, _) => Packet::Missing,
        (Some(body), 0x10) => Packet::Connect(body),
        (Some(body), 0x20) => Packet::Acknowledgement(body),
        _ => Packet::Other,
    }
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, behind) = rest.split_at_checked(length)?;
    *rest = behind;
    Some(taken)
}

fn take_byte(rest: &mut &[u8]) -> Option<u8> {
    take(rest, 1).map(|bytes| bytes[0])
}

fn take_short(rest: &mut &[u8]) -> Option<u16> {
    take(rest, 2).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
}

fn take_text<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = take_short(rest)?;
    take(rest, usize::from(length))
}

/// Takes a variable byte integer: at most four bytes of seven bits, the lowest first.
fn take_length(rest: &mut &[u8]) -> Option<usize> {
    let mut length = 0;
    for shift in [0, 7, 14, 21] {
        let byte = take_byte(rest)?;
        length |= usize::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(length);
        }
    }
    None
}

/// A property's value.
#[derive(Debug, Clone, Copy)]
enum PropertyValue<'a> {
    Number(u32),
    Text(&'a [u8]),
}

/// A validated list of properties.
#[derive(Debug, Clone, Copy)]
struct Properties<'a> {
    bytes: &'a [u8],
    table: &'static [(u8, Coding)],
}

impl<'a> Properties<'a> {
    /// Takes a list from the front; `None` when a property is unknown or repeated.
    fn take(rest: &mut &'a [u8], table: &'static [(u8, Coding)]) -> Option<Self> {
        let length = take_length(rest)?;
        let properties = Self { bytes: take(rest, length)?, table };
        let (mut bytes, mut seen) = (properties.bytes, 0_u64);
        while !bytes.is_empty() {
            let (number, found) = properties.next(&mut bytes)?;
            if found.is_some() && seen & 1 << number != 0 {
                return None;
            }
            seen |= 1 << number;
        }
        Some(properties)
    }

    /// Takes the next property; pairs have no value here.
    fn next(&self, rest: &mut &'a [u8]) -> Option<(u8, Option<PropertyValue<'a>>)> {
        let number = take_byte(rest)?;
        let (_, coding) = self.table.iter().find(|(known, _)| *known == number)?;
        let found = match coding {
            Coding::Byte => PropertyValue::Number(u32::from(take_byte(rest)?)),
            Coding::Short => PropertyValue::Number(u32::from(take_short(rest)?)),
            Coding::Long => {
                let bytes = take(rest, 4)?;
                PropertyValue::Number(u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
            }
            Coding::Text => PropertyValue::Text(take_text(rest)?),
            Coding::Pair => {
                take_text(rest)?;
                take_text(rest)?;
                return Some((number, None));
            }
        };
        Some((number, Some(found)))
    }

    /// Returns the value of a property; a missing number is 0. `None`: an unknown property or a missing string.
    fn get(&self, wanted: u8) -> Option<PropertyValue<'a>> {
        let (_, coding) = self.table.iter().find(|(known, _)| *known == wanted)?;
        let mut rest = self.bytes;
        while !rest.is_empty() {
            match self.next(&mut rest)? {
                (number, found) if number == wanted => return found,
                _ => {}
            }
        }
        (!matches!(coding, Coding::Text | Coding::Pair)).then_some(PropertyValue::Number(0))
    }
}

struct Connect<'a> {
    name: &'a [u8],
    version: u8,
    flags: u8,
    keep_alive: u16,
    client: &'a [u8],
    properties: Option<Properties<'a>>,
    will: Option<(Option<Properties<'a>>, &'a [u8], &'a [u8])>,
    user: Option<&'a [u8]>,
    password: Option<&'a [u8]>,
}

impl<'a> Connect<'a> {
    fn read(body: &'a [u8]) -> Option<Self> {
        let mut rest = body;
        let name = take_text(&mut rest)?;
        let version = take_byte(&mut rest)?;
        let flags = take_byte(&mut rest)?;
        if !matches!(name, b"MQTT" | b"MQIsdp") || !(3..=5).contains(&version) || flags & 1 != 0 {
            return None;
        }
        let keep_alive = take_short(&mut rest)?;
        let properties = |rest: &mut &'a [u8], table| {
            if version == 5 { Properties::take(rest, table).map(Some) } else { Some(None) }
        };
        let of_connect = properties(&mut rest, OF_CONNECT)?;
        let client = take_text(&mut rest)?;
        let will = if flags & 4 != 0 {
            let of_will = properties(&mut rest, OF_WILL)?;
            Some((of_will, take_text(&mut rest)?, take_text(&mut rest)?))
        } else {
            None
        };
        let user = if flags & 0x80 != 0 { Some(take_text(&mut rest)?) } else { None };
        let password = if flags & 0x40 != 0 { Some(take_text(&mut rest)?) } else { None };
        let connect = Self { name, version, flags, keep_alive, client, properties: of_connect, will, user, password };
        rest.is_empty().then_some(connect)
    }

    fn get(&self, wanted: MqttField) -> Option<PropertyValue<'a>> {
        Some(match wanted {
            MqttField::Flags => PropertyValue::Number(u32::from(self.flags)),
            MqttField::Version => PropertyValue::Number(u32::from(self.version)),
            MqttField::KeepAlive => PropertyValue::Number(u32::from(self.keep_alive)),
            MqttField::ProtocolName => PropertyValue::Text(self.name),
            MqttField::Client => PropertyValue::Text(self.client),
            MqttField::WillTopic => PropertyValue::Text(self.will?.1),
            MqttField::WillPayload => PropertyValue::Text(self.will?.2),
            MqttField::User => PropertyValue::Text(self.user?),
            MqttField::Password => PropertyValue::Text(self.password?),
            MqttField::ReasonCode => return None,
            MqttField::Property(number) => {
                let of_will = self.will.and_then(|(properties, ..)| properties);
                let is_of_connect = OF_CONNECT.iter().any(|(known, _)| *known == number);
                return if is_of_connect { self.properties? } else { of_will? }.get(number);
            }
        })
    }
}

struct Acknowledgement<'a> {
    flags: u8,
    reason: u8,
    properties: Option<Properties<'a>>,
}

impl<'a> Acknowledgement<'a> {
    /// A CONNACK with properties is of version 5.
    fn read(body: &'a [u8]) -> Option<Self> {
        let mut rest = body;
        let (flags, reason) = (take_byte(&mut rest)?, take_byte(&mut rest)?);
        let properties = if rest.is_empty() { None } else { Some(Properties::take(&mut rest, OF_ACKNOWLEDGEMENT)?) };
        (flags <= 1 && rest.is_empty()).then_some(Self { flags, reason, properties })
    }

    fn get(&self, wanted: MqttField) -> Option<PropertyValue<'a>> {
        Some(PropertyValue::Number(match wanted {
            MqttField::Flags => u32::from(self.flags),
            MqttField::Version => 4 + u32::from(self.properties.is_some()),
            MqttField::ReasonCode => u32::from(self.reason),
            MqttField::Property(number) => return self.properties?.get(number),
            _ => return None,
        }))
    }
}

fn field_value<'a>(context: &Context<'a>, value: Value<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    let query = arguments.made::<Query>(0)?;
    let packet = packet(value.bytes()?);
    if !matches!(packet, Packet::Missing) {
        context.settled();
    }
    let found = match packet {
        Packet::Missing => return context.missing(MissingInput::Bytes),
        Packet::Connect(body) if query.of_connect => Connect::read(body)?.get(query.wanted)?,
        Packet::Acknowledgement(body) if !query.of_connect => Acknowledgement::read(body)?.get(query.wanted)?,
        _ => return None,
    };
    match found {
        // An empty field counts as missing, as in HAProxy.
        PropertyValue::Text(text) => Some(Value::Str(text)).filter(|_| !text.is_empty()),
        PropertyValue::Number(number) => {
            let mut text = context.text(10);
            write!(text, "{number}").ok()?;
            text.finish().map(Value::Str)
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::expression::tests::Scene;

    const OLD: &str = "102200044d51545404c6003c000363696400027774000277700003757372000470617373";
    const NEW: &str = "105d00044d51545405c6003c1e110000000a210014270000010022000919011700150002616d160002616400036369641b18000000050101020000000703000263740800027274090002636400027774000277700003757372000470617373";
    const BARE: &str = "100f00044d5154540402003c0003636964";

    #[track_caller]
    fn check(rows: &[(&str, &str, &str)]) {
        for (packet, converter, expected) in rows {
            let packet = packet.replace("OLD", OLD).replace("NEW", NEW).replace("BARE", BARE);
            let text = format!("bin({packet}),{converter}");
            let scene = Scene { complete: true, ..Scene::default() };
            assert_eq!(scene.eval(&text), *expected, "{text}");
        }
    }

    #[test]
    fn packets_are_judged() {
        check(&[
            ("OLD", "mqtt_is_valid", "1"),
            ("NEW", "mqtt_is_valid", "1"),
            ("BARE", "mqtt_is_valid", "1"),
            ("OLD7878", "mqtt_is_valid", "1"),
            ("102200044d51545804c6003c000363696400027774000277700003757372000470617373", "mqtt_is_valid", "0"),
            ("102200044d51545406c6003c000363696400027774000277700003757372000470617373", "mqtt_is_valid", "0"),
            ("102200044d51545404c7003c000363696400027774000277700003757372000470617373", "mqtt_is_valid", "0"),
            ("102200044d51545404c6003c00036369640002777400027770000375737200047061", "mqtt_is_valid", "<none>"),
            ("101500044d5154540442003c0003636964000470617373", "mqtt_is_valid", "1"),
            (
                "103500044d5154540502003c25110000000a210014270000010022000919011700150002616d16000261642600016b0001760003636964",
                "mqtt_is_valid",
                "1",
            ),
            (
                "103100044d5154540502003c21110000000a210014270000010022000919011700150002616d16000261642100140003636964",
                "mqtt_is_valid",
                "0",
            ),
            ("101200044d5154540502003c0263010003636964", "mqtt_is_valid", "0"),
            ("20020100", "mqtt_is_valid", "1"),
            ("200c000009210005120003616263", "mqtt_is_valid", "1"),
            ("2003008200", "mqtt_is_valid", "1"),
            ("20020200", "mqtt_is_valid", "0"),
            ("e000", "mqtt_is_valid", "0"),
            ("e001", "mqtt_is_valid", "<none>"),
            ("e0", "mqtt_is_valid", "<none>"),
            ("0001", "mqtt_is_valid", "0"),
            ("70ff", "mqtt_is_valid", "<none>"),
            ("70ffffffff", "mqtt_is_valid", "0"),
            ("f8ff", "mqtt_is_valid", "0"),
            ("1100", "mqtt_is_valid", "0"),
            ("300400016162", "mqtt_is_valid", "0"),
            ("102400064d514973647004c6003c000363696400027774000277700003757372000470617373", "mqtt_is_valid", "1"),
            ("102400044d51545404c6003c0003636964000277740002777000037573720004706173737a7a", "mqtt_is_valid", "0"),
        ]);
    }

    #[test]
    fn fields_are_found() {
        check(&[
            ("OLD", "mqtt_field_value(connect,flags)", "198"),
            ("OLD", "mqtt_field_value(connect,protocol_name)", "MQTT"),
            ("OLD", "mqtt_field_value(connect,protocol_version)", "4"),
            ("OLD", "mqtt_field_value(connect,client_identifier)", "cid"),
            ("100c00044d515454040200000000", "mqtt_field_value(connect,client_identifier)", "<none>"),
            ("OLD", "mqtt_field_value(connect,will_topic)", "wt"),
            ("OLD", "mqtt_field_value(connect,will_payload)", "wp"),
            ("OLD", "mqtt_field_value(connect,username)", "usr"),
            ("OLD", "mqtt_field_value(connect,password)", "pass"),
            ("OLD", "mqtt_field_value(connect,keepalive)", "60"),
            ("OLD", "mqtt_field_value(connect,17)", "<none>"),
            ("OLD", "mqtt_field_value(connect,38)", "<none>"),
            (
                "OLD",
                "mqtt_field_value(connect,foo)",
                "!invalid args in converter 'mqtt_field_value' : Unknown MQTT field name 'foo' for packet type 'connect'",
            ),
            ("NEW", "mqtt_field_value(connect,17)", "10"),
            ("NEW", "mqtt_field_value(connect,33)", "20"),
            ("NEW", "mqtt_field_value(connect,39)", "256"),
            ("NEW", "mqtt_field_value(connect,34)", "9"),
            ("NEW", "mqtt_field_value(connect,25)", "1"),
            ("NEW", "mqtt_field_value(connect,23)", "0"),
            ("NEW", "mqtt_field_value(connect,21)", "am"),
            ("NEW", "mqtt_field_value(connect,22)", "ad"),
            ("NEW", "mqtt_field_value(connect,24)", "5"),
            ("NEW", "mqtt_field_value(connect,1)", "1"),
            ("NEW", "mqtt_field_value(connect,2)", "7"),
            ("NEW", "mqtt_field_value(connect,3)", "ct"),
            ("NEW", "mqtt_field_value(connect,8)", "rt"),
            ("NEW", "mqtt_field_value(connect,9)", "cd"),
            ("NEW", "mqtt_field_value(connect,protocol_version)", "5"),
            ("BARE", "mqtt_field_value(1,username)", "<none>"),
            ("OLD", "mqtt_field_value(CONNECT,flags)", "198"),
            ("OLD", "mqtt_field_value(2,flags)", "<none>"),
            (
                "OLD",
                "mqtt_field_value(foo,flags)",
                "!invalid args in converter 'mqtt_field_value' : Unknown MQTT type 'foo'",
            ),
            ("20020100", "mqtt_field_value(connack,flags)", "1"),
            ("20020100", "mqtt_field_value(connack,protocol_version)", "4"),
            ("20020005", "mqtt_field_value(connack,reason_code)", "5"),
            ("20020100", "mqtt_field_value(connack,33)", "<none>"),
            ("200c000009210005120003616263", "mqtt_field_value(connack,protocol_version)", "5"),
            ("200c000009210005120003616263", "mqtt_field_value(connack,33)", "5"),
            ("200c000009210005120003616263", "mqtt_field_value(connack,18)", "abc"),
            ("200c000009210005120003616263", "mqtt_field_value(connack,17)", "0"),
            ("2003008200", "mqtt_field_value(connack,reason_code)", "130"),
            ("2003008200", "mqtt_field_value(connack,18)", "<none>"),
        ]);
    }
}
