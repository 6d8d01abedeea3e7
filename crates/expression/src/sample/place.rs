//! The places of expressions, and where each fetch is available: the columns of HAProxy's `-dKsmp`. Must never depend
//! on a particular rule.

/// The place where an expression is evaluated, in the order of those columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum EvalPlace {
    /// `tcp-request connection`.
    Connection,
    /// `tcp-request session`.
    Session,
    /// `tcp-request content` of a frontend.
    FrontRequestContent,
    /// `http-request` of a frontend, with the head only.
    FrontRequestHead,
    /// `http-request` of a frontend, with the body.
    FrontRequestBody,
    /// `use_backend`.
    Switching,
    /// `tcp-request content` of a backend.
    BackRequestContent,
    /// `http-request` of a backend, with the head only.
    BackRequestHead,
    /// `http-request` of a backend, with the body.
    BackRequestBody,
    /// `use-server`, `balance`, `stick match`.
    ServerChoice,
    /// `source` of a server.
    ServerSource,
    /// `tcp-response content` of a backend.
    BackResponseContent,
    /// `http-response` of a backend, with the head only.
    BackResponseHead,
    /// `http-response` of a backend, with the body.
    BackResponseBody,
    /// `stick store-response`.
    StickStore,
    /// `tcp-response content` of a frontend.
    FrontResponseContent,
    /// `http-response` of a frontend, with the head only.
    FrontResponseHead,
    /// `http-response` of a frontend, with the body.
    FrontResponseBody,
    /// A log line.
    Log,
    /// `tcp-check` and `http-check`.
    Check,
    /// While the configuration is being parsed.
    Configuration,
    /// The runtime API.
    Runtime,
}

impl EvalPlace {
    /// Every place, in order.
    pub const ALL: [Self; 22] = [
        Self::Connection,
        Self::Session,
        Self::FrontRequestContent,
        Self::FrontRequestHead,
        Self::FrontRequestBody,
        Self::Switching,
        Self::BackRequestContent,
        Self::BackRequestHead,
        Self::BackRequestBody,
        Self::ServerChoice,
        Self::ServerSource,
        Self::BackResponseContent,
        Self::BackResponseHead,
        Self::BackResponseBody,
        Self::StickStore,
        Self::FrontResponseContent,
        Self::FrontResponseHead,
        Self::FrontResponseBody,
        Self::Log,
        Self::Check,
        Self::Configuration,
        Self::Runtime,
    ];
}

impl EvalPlace {
    /// For a proxy with both sides (`listen`), messages name the place in its frontend.
    pub const fn in_front(self) -> Self {
        match self {
            Self::BackRequestContent => Self::FrontRequestContent,
            Self::BackRequestHead => Self::FrontRequestHead,
            other => other,
        }
    }

    /// The place's name in HAProxy's messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Connection => "frontend tcp-request connection rule",
            Self::Session => "frontend tcp-request session rule",
            Self::FrontRequestContent => "frontend tcp-request content rule",
            Self::FrontRequestHead => "frontend http-request header rule",
            Self::FrontRequestBody => "frontend http-request body rule",
            Self::Switching => "frontend use-backend rule",
            Self::BackRequestContent => "backend tcp-request content rule",
            Self::BackRequestHead => "backend http-request header rule",
            Self::BackRequestBody => "backend http-request body rule",
            Self::ServerChoice => "backend use-server, balance or stick-match rule",
            Self::ServerSource => "server source selection",
            Self::BackResponseContent => "backend tcp-response content rule",
            Self::BackResponseHead => "backend http-response header rule",
            Self::BackResponseBody => "backend http-response body rule",
            Self::StickStore => "backend stick-store rule",
            Self::FrontResponseContent => "frontend tcp-response content rule",
            Self::FrontResponseHead => "frontend http-response header rule",
            Self::FrontResponseBody => "frontend http-response body rule",
            Self::Log => "logs",
            Self::Check => "backend tcp-check rule",
            Self::Configuration => "configuration parser",
            Self::Runtime => "CLI parser",
        }
    }
}

/// A set of places: bit n is the nth place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Places(u32);

impl Places {
    /// Everywhere: constants, variables of the process.
    pub const EVERYWHERE: Self = Self::of("YYYYYYYYYYYYYYYYYYYYYY");
    /// Internal state: everywhere but while the configuration is being parsed.
    pub const RUNNING: Self = Self::of("YYYYYYYYYYYYYYYYYYYY.Y");
    /// The client's connection: everywhere with a connection.
    pub const CLIENT: Self = Self::of("YYYYYYYYYYYYYYYYYYYY..");
    /// The client's session: as [`Places::CLIENT`], but not in checks.
    pub const CLIENT_SESSION: Self = Self::of("YYYYYYYYYYYYYYYYYYY...");
    /// The client's transport layer: after the handshakes.
    pub const CLIENT_LAYER5: Self = Self::of(".YYYYYYYYYYYYYYYYYY...");
    /// The request while it is processed.
    pub const REQUEST: Self = Self::of("..YYYYYYYYY...........");
    /// The request, and its remaining state after it was sent.
    pub const TRANSACTION: Self = Self::of("..YYYYYYYYYYYYYYYYY...");
    /// The bytes of either message, and those of checks.
    pub const EITHER: Self = Self::of("..YYYYYYYYYYYYYYYY.Y..");
    /// The backend.
    pub const BACKEND: Self = Self::of("......YYYYYYYYYYYYYY..");
    /// The server, once selected.
    pub const SERVER: Self = Self::of("..........YYYYYYYYYY..");
    /// The server's connection.
    pub const SERVER_LAYER5: Self = Self::of("...........YYYYYYYYY..");
    /// The selection of a server and everything after it.
    pub const TARGET: Self = Self::of(".........YYYYYYYYYY...");
    /// The response while it is processed.
    pub const RESPONSE: Self = Self::of("...........YYYYYYY.Y..");

    /// Parses the columns: `Y` where available, `.` elsewhere.
    pub const fn of(columns: &str) -> Self {
        let bytes = columns.as_bytes();
        let (mut bits, mut index) = (0, 0);
        while index < bytes.len() {
            if bytes[index] == b'Y' {
                bits |= 1 << index;
            }
            index += 1;
        }
        Self(bits)
    }

    /// Whether the set contains that place.
    pub const fn has(self, place: EvalPlace) -> bool {
        self.0 & (1 << place as u8) != 0
    }

    /// Returns the columns.
    pub fn columns(self) -> impl Iterator<Item = bool> {
        EvalPlace::ALL.into_iter().map(move |place| self.has(place))
    }

    /// HAProxy's name of the data that a fetch of these places needs.
    pub fn needs(self) -> &'static str {
        [
            (Self::REQUEST, "HTTP request headers"),
            (Self::RESPONSE, "HTTP response headers"),
            (Self::SERVER_LAYER5, "server address"),
            (Self::TARGET, "response buffer statistics"),
            (Self::TRANSACTION, "HTTP request"),
            (Self::EITHER, "HTTP request headers,HTTP response headers"),
            (Self::BACKEND, "backend"),
            (Self::SERVER, "server"),
            (Self::CLIENT, "client address"),
            (Self::CLIENT_LAYER5, "client-side connection"),
            (Self::CLIENT_SESSION, "frontend"),
            (Self::RUNNING, "internal state"),
        ]
        .iter()
        .find(|(places, _)| *places == self)
        .map_or("something", |(_, name)| name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_read_and_told() {
        let places = Places::of("Y.Y");
        assert!(
            places.has(EvalPlace::Connection)
                && !places.has(EvalPlace::Session)
                && places.has(EvalPlace::FrontRequestContent)
        );
        let shown: String = Places::RESPONSE.columns().map(|has| if has { 'Y' } else { '.' }).collect();
        assert_eq!(shown, "...........YYYYYYY.Y..");
        assert!(EvalPlace::ALL.iter().enumerate().all(|(index, place)| *place as usize == index));
    }
}
