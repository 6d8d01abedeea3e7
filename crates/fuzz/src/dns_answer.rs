//! Any bytes as a response of a name server: no panic, and nothing is returned that the query did not ask for.


use wire::dns::{Kind, Name, find, question, read};

/// Runs on one input; panics if a property is violated.
pub fn run(input: &[u8]) {
    let Some(name) = Name::parse("a.b") else { return };
    // Unchanged, and after the header and the question of a plausible response.
    let mut likely = question(0, &name, Kind::Srv, 512);
    likely[2] |= 0x80;
    likely[7] = 3;
    likely[11] = 2;
    likely.truncate(12 + 5 + 4);
    likely.extend(input);
    for message in [input, &likely] {
        let Ok(answer) = read(message) else { continue };
        for kind in [Kind::A, Kind::Aaaa, Kind::Srv] {
            let Ok(found) = find(answer.clone(), &name, kind) else { continue };
            assert!(found.addresses.iter().all(|ip| ip.is_ipv4() == (kind == Kind::A)));
            assert!(kind == Kind::Srv || found.services.is_empty());
            for service in found.services {
                assert!(service.target.text().is_none_or(|text| Name::parse(&text) == Some(service.target)));
            }
        }
    }
}
