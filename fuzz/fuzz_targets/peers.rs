//! Any bytes as what a peer sends: no panic and an end, and what is understood is written as it was read.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::peers::{Definition, Hello, Message, Update, decode, definition, update};

fuzz_target!(|data: &[u8]| {
    if let Ok(Some((hello, length))) = Hello::decode(data) {
        let mut out = Vec::new();
        hello.encode(&mut out);
        assert_eq!(Hello::decode(&out), Ok(Some((hello, out.len()))));
        assert!(length <= data.len());
    }
    let (mut rest, mut table) = (data, None);
    while let Ok(Some(frame)) = decode(rest, 16_384) {
        assert!(frame.length > 0 && frame.length <= rest.len());
        rest = &rest[frame.length..];
        match (frame.message, &table) {
            (Message::Definition(payload), _) => {
                table = Definition::decode(payload).ok();
                if let Some(table) = &table {
                    let mut out = Vec::new();
                    definition(&mut out, table);
                    let Ok(Some(again)) = decode(&out, usize::MAX) else { panic!("{table:?}") };
                    let Message::Definition(payload) = again.message else { panic!("{table:?}") };
                    assert_eq!(Definition::decode(payload).as_ref(), Ok(table));
                }
            }
            (Message::Update(has, payload), Some(table)) => {
                let Ok(entry) = Update::decode(payload, has, table) else { continue };
                let mut out = Vec::new();
                update(&mut out, table, &entry);
                let Ok(Some(again)) = decode(&out, usize::MAX) else { panic!("{entry:?}") };
                let Message::Update(has, payload) = again.message else { panic!("{entry:?}") };
                assert_eq!(Update::decode(payload, has, table), Ok(entry));
            }
            _ => {}
        }
    }
});
