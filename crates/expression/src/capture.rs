//! Captures (configuration manual, sections 4.2 and 8.8): the parts of a request and its response that are kept for the
//! log. Must never capture anything that the configuration does not name.

use wire::http::Head;

/// The captures of a frontend.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CapturePlan {
    /// Slots of the request, in order.
    pub request: Box<[Slot]>,
    /// Slots of the response, in order.
    pub response: Box<[Slot]>,
    /// `capture cookie`: the prefix of the cookie's name and the maximum length in bytes.
    pub cookie: Option<(Box<[u8]>, usize)>,
}

/// A slot for one captured text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// The header field that fills the slot; `None`: rules fill it.
    pub field: Option<Box<[u8]>>,
    /// Maximum length in bytes.
    pub length: usize,
}

/// A captured text; its memory is reused.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CapturedText {
    bytes: Vec<u8>,
    is_set: bool,
}

impl CapturedText {
    fn set(&mut self, bytes: &[u8], length: usize) {
        self.bytes.clear();
        self.bytes.extend_from_slice(&bytes[..bytes.len().min(length)]);
        self.is_set = true;
    }

    /// Removes the text and keeps the capacity.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.is_set = false;
    }

    /// Returns the text, if one was captured.
    pub fn get(&self) -> Option<&[u8]> {
        self.is_set.then_some(&self.bytes)
    }
}

pub type Line = (Box<[u8]>, Box<[u8]>);

/// The captures of one request and its response.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Captures {
    pub request: Vec<CapturedText>,
    pub response: Vec<CapturedText>,
    /// The request's cookie, `name=value`.
    pub cookie: CapturedText,
    /// The response's cookie, `name=value`.
    pub set_cookie: CapturedText,
    /// Method and target as received, if rules have changed them.
    pub line: Option<Line>,
}

impl Captures {
    /// Removes all captures and keeps the capacity.
    pub fn clear(&mut self) {
        self.request.iter_mut().chain(&mut self.response).for_each(CapturedText::clear);
        self.cookie.clear();
        self.set_cookie.clear();
        self.line = None;
    }

    /// Captures what the plan names from a request.
    pub fn take_request(&mut self, plan: &CapturePlan, head: &Head) {
        fill(&plan.request, &mut self.request, head);
        if let Some((name, length)) = &plan.cookie
            && let Some(found) = cookie(head, b"cookie", name)
        {
            self.cookie.set(found, *length);
        }
    }

    /// Captures what the plan names from a response.
    pub fn take_response(&mut self, plan: &CapturePlan, head: &Head) {
        fill(&plan.response, &mut self.response, head);
        if let Some((name, length)) = &plan.cookie
            && let Some(found) = cookie(head, b"set-cookie", name)
        {
            self.set_cookie.set(found, *length);
        }
    }

    /// Sets a slot from a rule; a slot that the frontend does not declare is ignored.
    pub fn set(&mut self, plan: &CapturePlan, of_request: bool, index: usize, text: &[u8]) {
        let (slots, kept) =
            if of_request { (&plan.request, &mut self.request) } else { (&plan.response, &mut self.response) };
        if let Some(slot) = slots.get(index) {
            kept.resize_with(slots.len().max(kept.len()), CapturedText::default);
            kept[index].set(text, slot.length);
        }
    }
}

/// Captures the last field of each slot's name.
fn fill(slots: &[Slot], kept: &mut Vec<CapturedText>, head: &Head) {
    if slots.is_empty() {
        return;
    }
    kept.resize_with(slots.len(), CapturedText::default);
    for (slot, kept) in slots.iter().zip(kept) {
        let Some(name) = slot.field.as_deref() else { continue };
        if let Some((_, value)) = head.fields().filter(|(known, _)| known.eq_ignore_ascii_case(name)).last() {
            kept.set(value, slot.length);
        }
    }
}

/// Returns the first cookie whose name has that prefix, as `name=value`.
fn cookie<'h>(head: &'h Head, field: &[u8], name: &[u8]) -> Option<&'h [u8]> {
    // A response sets one cookie per field; attributes follow it. Cookies of a request may be separated by commas, too.
    let of_request = field == b"cookie";
    let most = if of_request { usize::MAX } else { 1 };
    let ends = |byte: &u8| *byte == b';' || (of_request && *byte == b',');
    let fields = head.fields().filter(|(known, _)| known.eq_ignore_ascii_case(field));
    let cookies = fields.flat_map(|(_, value)| value.split(ends).take(most));
    // The prefix may end with the equal sign.
    cookies.map(<[u8]>::trim_ascii).find(|found| found.starts_with(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(fields: &[(&str, &str)]) -> Head {
        let mut head = Head::new();
        fields.iter().for_each(|(name, value)| head.append(name.as_bytes(), value.as_bytes()));
        head
    }

    #[test]
    fn slots_take_the_last_field_and_are_cut() {
        let slot = |field: Option<&str>, length| Slot { field: field.map(|name| name.as_bytes().into()), length };
        let plan = CapturePlan {
            request: [slot(Some("x-a"), 3), slot(None, 2), slot(Some("x-b"), 9)].into(),
            ..CapturePlan::default()
        };
        let mut captures = Captures::default();
        captures.take_request(&plan, &head(&[("x-a", "1"), ("x-a", "23456")]));
        captures.set(&plan, true, 1, b"rule");
        captures.set(&plan, true, 7, b"nowhere");
        captures.set(&plan, false, 0, b"nowhere");
        let found: Vec<Option<&[u8]>> = captures.request.iter().map(CapturedText::get).collect();
        assert_eq!(found, [Some(&b"234"[..]), Some(b"ru"), None]);
        captures.clear();
        assert!(captures.request.iter().all(|kept| kept.get().is_none()));
    }

    #[test]
    fn cookies_are_found_by_what_their_names_begin_with() {
        let head = head(&[("cookie", "A=1; SESSION=abc; SESS=0"), ("cookie", "B=2, D=3")]);
        for (name, expected) in [
            ("SESS", Some("SESSION=abc")),
            ("SESS=", Some("SESS=0")),
            ("B", Some("B=2")),
            ("D", Some("D=3")),
            ("C", None),
        ] {
            assert_eq!(cookie(&head, b"cookie", name.as_bytes()), expected.map(str::as_bytes), "{name}");
        }
    }
}
