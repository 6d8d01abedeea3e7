//! Captures (configuration manual, sections 4.2 and 8.8): what of a request and its answer is kept for the log. Must never
//! look for anything that the configuration did not name.

use wire::http::Head;

/// What a frontend keeps.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CapturePlan {
    /// Slots of requests, in order.
    pub request: Box<[Slot]>,
    /// Slots of answers, in order.
    pub response: Box<[Slot]>,
    /// `capture cookie`: what its name begins with, and bytes at most.
    pub cookie: Option<(Box<[u8]>, usize)>,
}

/// A place for one text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// The header field that fills it; `None`: rules do.
    pub field: Option<Box<[u8]>>,
    /// Bytes at most.
    pub length: usize,
}

/// A text that is kept; its memory is used again.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Kept {
    bytes: Vec<u8>,
    is_set: bool,
}

impl Kept {
    fn set(&mut self, bytes: &[u8], length: usize) {
        self.bytes.clear();
        self.bytes.extend_from_slice(&bytes[..bytes.len().min(length)]);
        self.is_set = true;
    }

    /// Forgets it and keeps the capacity.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.is_set = false;
    }

    /// The text, if there is one.
    pub fn get(&self) -> Option<&[u8]> {
        self.is_set.then_some(&self.bytes)
    }
}

/// A request's method and target.
pub type Line = (Box<[u8]>, Box<[u8]>);

/// What was kept of a request and its answer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Captures {
    /// The slots of the request.
    pub request: Vec<Kept>,
    /// The slots of the answer.
    pub response: Vec<Kept>,
    /// The cookie of the request, `name=value`.
    pub cookie: Kept,
    /// The cookie of the answer.
    pub set_cookie: Kept,
    /// Method and target as they came, where rules have changed them.
    pub line: Option<Line>,
}

impl Captures {
    /// Forgets everything and keeps the capacity.
    pub fn clear(&mut self) {
        self.request.iter_mut().chain(&mut self.response).for_each(Kept::clear);
        self.cookie.clear();
        self.set_cookie.clear();
        self.line = None;
    }

    /// Keeps what the plan wants of a request.
    pub fn take_request(&mut self, plan: &CapturePlan, head: &Head) {
        fill(&plan.request, &mut self.request, head);
        if let Some((name, length)) = &plan.cookie
            && let Some(found) = cookie(head, b"cookie", name)
        {
            self.cookie.set(found, *length);
        }
    }

    /// Keeps what the plan wants of an answer.
    pub fn take_response(&mut self, plan: &CapturePlan, head: &Head) {
        fill(&plan.response, &mut self.response, head);
        if let Some((name, length)) = &plan.cookie
            && let Some(found) = cookie(head, b"set-cookie", name)
        {
            self.set_cookie.set(found, *length);
        }
    }

    /// A rule fills a slot; one that the frontend does not have is passed over.
    pub fn set(&mut self, plan: &CapturePlan, of_request: bool, index: usize, text: &[u8]) {
        let (slots, kept) =
            if of_request { (&plan.request, &mut self.request) } else { (&plan.response, &mut self.response) };
        if let Some(slot) = slots.get(index) {
            kept.resize_with(slots.len().max(kept.len()), Kept::default);
            kept[index].set(text, slot.length);
        }
    }
}

/// The last field of each slot's name.
fn fill(slots: &[Slot], kept: &mut Vec<Kept>, head: &Head) {
    if slots.is_empty() {
        return;
    }
    kept.resize_with(slots.len(), Kept::default);
    for (slot, kept) in slots.iter().zip(kept) {
        let Some(name) = slot.field.as_deref() else { continue };
        if let Some((_, value)) = head.fields().filter(|(known, _)| known.eq_ignore_ascii_case(name)).last() {
            kept.set(value, slot.length);
        }
    }
}

/// The first cookie whose name begins like that, as `name=value`.
fn cookie<'h>(head: &'h Head, field: &[u8], name: &[u8]) -> Option<&'h [u8]> {
    // An answer sets one cookie a field; what follows it are attributes. Between those of a request commas may stand, too.
    let of_request = field == b"cookie";
    let most = if of_request { usize::MAX } else { 1 };
    let ends = |byte: &u8| *byte == b';' || (of_request && *byte == b',');
    let fields = head.fields().filter(|(known, _)| known.eq_ignore_ascii_case(field));
    let cookies = fields.flat_map(|(_, value)| value.split(ends).take(most));
    // What is looked for may end with the equal sign.
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
        let found: Vec<Option<&[u8]>> = captures.request.iter().map(Kept::get).collect();
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
