//! Tests of certificates that several nodes share.

use crate::compile::tls::tests::compile;

const CERTIFICATE: &str = "crt-store\n load crt none.pem acme LE domains a.example";

/// Compiles two stores, lines of `global` and an `acme` section with these lines.
fn shared(global: &str, lines: &str) -> (Option<crate::program::Program>, Vec<String>) {
    let stores = "store a\n server s 192.0.2.1:1\nstore b\n server s 192.0.2.1:1\n";
    let section = "acme LE\n directory http://a/\n";
    let text = format!("global\n expose-experimental-directives\n{global}\n{stores}{section}{lines}\n{CERTIFICATE}");
    compile(&text, "crt none.pem")
}

#[test]
fn what_is_wrong_with_a_shared_store_is_said() {
    let rows = [
        ("", "shared-store c", "acme section 'LE': there is no store 'c' (known: 'a', 'b')."),
        (
            "",
            "shared-store a",
            "acme section 'LE': 'shared-store' needs 'cluster-secret' in 'global': private keys in the store are encrypted with it.",
        ),
        (
            "cluster-secret s",
            "shared-store a\n map virt@x",
            "acme section 'LE': 'map' cannot be used with 'shared-store': each node answers challenges itself.",
        ),
        (
            "cluster-secret s",
            "shared-store a\nacme X\n directory http://a/\n shared-store b",
            "acme section 'X': all 'acme' sections share one account: the store is 'a' elsewhere, not 'b'.",
        ),
    ];
    for (global, lines, message) in rows {
        let (program, said) = shared(global, lines);
        assert!(program.is_none() && said.iter().any(|said| said.starts_with(message)), "{lines}\n{said:?}");
    }
    let (program, said) = compile(
        &format!(
            "global\n expose-experimental-directives\nacme LE\n directory http://a/\n shared-store c\n{CERTIFICATE}"
        ),
        "crt none.pem",
    );
    let message = "acme section 'LE': there is no store 'c' (there is none).";
    assert!(program.is_none() && said.iter().any(|said| said.starts_with(message)), "{said:?}");
}

/// Nodes that share the account answer challenges themselves, and generate no key of their own.
#[test]
fn sections_with_a_shared_store_have_its_account() {
    let (program, said) = shared("cluster-secret s", "shared-store b");
    let acme = program.unwrap_or_else(|| panic!("{said:?}")).acme;
    let store = acme.shared.expect("a store");
    assert_eq!((store.store, store.account), (1, None));
    assert_eq!(store.sealing, tls::sealed::SealingKey::derived(b"s").unwrap());
    let section = &acme.sections[0];
    assert_eq!((section.is_shared, section.challenge), (true, crate::program::Challenge::OwnHttp01));
    let (program, _) = shared("cluster-secret s", "account-key rsa.key\n shared-store b");
    assert!(program.unwrap().acme.shared.unwrap().account.is_some());
}
