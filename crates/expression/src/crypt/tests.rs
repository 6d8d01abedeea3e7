//! Hashes of Debian's crypt(3), and texts that are no hashes.

use super::*;

#[rustfmt::skip]
const ROWS: &[(&str, &str)] = &[
    ("", "abmF1QH4PEr.E"),
    ("a", "abxxB7HlIeckU"),
    ("password", "abJnggxhB/yWI"),
    ("Hello world!", "abMbH7WsHr7wQ"),
    ("a much longer password that goes beyond seventy-two bytes, as bcrypt counts them, really", "abgCPYIPCO/2s"),
    ("pässwörd", "abzp3RXJm5gNA"),
    ("12345678", "ab1iBa.N.U2C6"),
    ("123456789", "ab1iBa.N.U2C6"),
    ("a", "./xT2u5QYaHcU"),
    ("a much longer password that goes beyond seventy-two bytes, as bcrypt counts them, really", "./GGuTBC5KIQk"),
    ("123456789", "./qw5JW./79Vg"),
    ("password", "zZDDIZ0NOlPzw"),
    ("pässwörd", "zZw8laZTywrOQ"),
    ("", "_J9..XXXXH2vTanWFnnk"),
    ("a", "_J9..XXXXK1uyvFEC9.c"),
    ("password", "_J9..XXXX2U5SRFqVK4U"),
    ("Hello world!", "_J9..XXXXeCZfbw8AeNQ"),
    ("a much longer password that goes beyond seventy-two bytes, as bcrypt counts them, really", "_J9..XXXXnW.3a9dFvmU"),
    ("pässwörd", "_J9..XXXXs1e/u.hiCn."),
    ("12345678", "_J9..XXXXDFqx.BSsy2o"),
    ("123456789", "_J9..XXXXVfHvrR9foZ2"),
    ("", "_/...ABCDv6Lupo4P4ho"),
    ("Hello world!", "_/...ABCDZGgAynV1Xzg"),
    ("12345678", "_/...ABCDuySqe4L4z3."),
    ("a", "$1$abc$uAXS.Zj1ZDNcW9iX1TVH2/"),
    ("a much longer password that goes beyond seventy-two bytes, as bcrypt counts them, really", "$1$abc$Pr1TE6MrozcJOoNYBAFlJ/"),
    ("123456789", "$1$abc$8xacEKP49LiRnenzD/X2C."),
    ("", "$1$$qRPK7m23GJusamGpoGLby/"),
    ("a", "$1$$Ij31LCAysPM23KuPlm1wA/"),
    ("password", "$1$$I2o9Z7NcvQAKp7wyCTlia0"),
    ("Hello world!", "$1$$rpmA4u0GZbZzsddc1wzCB0"),
    ("a much longer password that goes beyond seventy-two bytes, as bcrypt counts them, really", "$1$$bo6RB2EdQejY6XY7AGyt.0"),
    ("pässwörd", "$1$$G9xLeipIGv89GurZHGiz00"),
    ("12345678", "$1$$KiBIAg9S3kkFgZO7s28Wc."),
    ("123456789", "$1$$WILYdZVNZYB.Ohw4cxakk1"),
    ("Hello world!", "$1$abcdefgh$fzmjzFdo5nMtBG8gtud5e0"),
    ("12345678", "$1$abcdefgh$poMCFpiVRevlCQ8FbmxhU1"),
    ("", "$5$abc$bBHLwRRW2Li0XKaX13kz/g2fkDil4Jx46aNvd.48MS8"),
    ("Hello world!", "$5$abc$6eVtF.HYJrh1xHLVKcPLbuY4ZswvvTvyjCxwUteyZB2"),
    ("12345678", "$5$abc$YSl9AvS7.93hi.kta3qpQZYABHd8KeymyvOtJ9b1vI."),
    ("", "$5$rounds=1000$abcdefghijklmnop$XPI9divaDz2UXR4L48noVEQhGh1MV.xPSC/a9G2Nit7"),
    ("a", "$5$rounds=1000$abcdefghijklmnop$Z7B24mb7G0UGbrVQx5XsOSvQGEPLZct8F32pHM2IdVA"),
    ("password", "$5$rounds=1000$abcdefghijklmnop$0.i7pTkgRcrwt4JftU7Ve3MEMb/4W.rkuUQqGV6THd8"),
    ("Hello world!", "$5$rounds=1000$abcdefghijklmnop$2YkAk4CSgMlRdux50wNUEDGZcvebT7CsSvJODseOuj6"),
    ("a much longer password that goes beyond seventy-two bytes, as bcrypt counts them, really", "$5$rounds=1000$abcdefghijklmnop$wyCT4yq4BpwWumqqj5b255m8YX77uOmNxmGjJlp2N89"),
    ("pässwörd", "$5$rounds=1000$abcdefghijklmnop$hSSl8kVq9Mht7u5AI6SuvMjBT9VwuMiU8Eh69ircxG."),
    ("12345678", "$5$rounds=1000$abcdefghijklmnop$qWH/sBc7m3v1xIR4g3lEkAG5dACz2hwJ42s3Lt8fcw0"),
    ("123456789", "$5$rounds=1000$abcdefghijklmnop$gwR0o6J.CU5tAodRJ4X18fXdVoDjIqbyb/htz.aJl32"),
    ("password", "$5$$V0edGK/GfSrNwzYCrbML4V/gvkNuNTfvn.Pt/LMSAf8"),
    ("pässwörd", "$5$$mKQo8jxnSGdiQXLLbG6q6DWxJBvvxqZ7fk8JqDxTCx5"),
    ("Hello world!", "$6$saltsalt$pn.eNCAqRIao3pxsOGdjVa9wVR7Rb/3WnbxOluoQKVZPzLuyetx3yF6VIZDfQnn/arrFVfrq3BqRb9gLqhI5z0"),
    ("12345678", "$6$saltsalt$9vIXh5xFJESF2.DxxXyWlpOT.0t06Y2Pk11StIw2L8oaOTl42ZfuhPPi5h2PPjbLI.FnnhTBEMMcL05LS2ZmY."),
    ("", "$6$rounds=1234$x$etR/edFdZLRgu2BZqh87KX3jghNKa7l4t.Isy2FIF9CEt3b7TyFTvO5wZK09YzoHL8.7VYL7I4rczLX3RMb4a0"),
    ("a", "$6$rounds=1234$x$OwsdZ1WZR6qdHpqBrXgcwLc6XHvQJ2H28jEnFOj1D/xIlTa61pD8jnJsAfkCLZ/MGp1VZkCI3qXY4AWov2xGY0"),
    ("password", "$6$rounds=1234$x$Lq1PgFosLkUmd0U.3MQ7NpTp1FJ8nfEh11goOrI36DScXW1kY3lsHPmMUNFt6WrPlorJ3O7yGigTohE9qGs8S/"),
    ("Hello world!", "$6$rounds=1234$x$D9jROJVzTdy.0IbPqaRaZLzegUONMwqF1Q6qxuTFikSkLAuKX4xS0WnN6igSiYv096gK5qG0TXCEk2C3qA1bO."),
    ("a much longer password that goes beyond seventy-two bytes, as bcrypt counts them, really", "$6$rounds=1234$x$9eOek89KcsMOIkXMclaGp4KTggAIaB8no8eX6vIPhs1ieNspH.upkm4KTfhhgUXDs.J/MTxp6xKJRQmMDkeQ.0"),
    ("pässwörd", "$6$rounds=1234$x$Kh4tdCI4Qu9C9JWBCuauFDM8we5HBl.lny1yl1D9/nUC2UgAwfCTLeMvvblNLJvgCCpdOJCXYNhB8Drr5ByFW/"),
    ("12345678", "$6$rounds=1234$x$6OlgYkKW.oA1IfuHsPlCFfEFxNkszLw/m8sXreiLlaXWqj0f.dcRlYtHOLuKF9H4KknlJ98.lh0WBwOrb.puS1"),
    ("123456789", "$6$rounds=1234$x$G4qlQiqDTzZETezkgCZghmtZ35Waaq2oW9OdhCktv3XLQiHjGQyavog8wlf2r.2hE9mfGtVbDLpxtpgkkPJiJ."),
    ("a", "$2a$04$CCCCCCCCCCCCCCCCCCCCC.f/Fm9DOYGp2ai9rjxvG4QHlhtDCuDuu"),
    ("a much longer password that goes beyond seventy-two bytes, as bcrypt counts them, really", "$2a$04$CCCCCCCCCCCCCCCCCCCCC.9CtqSaB7pMRcrv9.mBDg68hT75C9HNi"),
    ("123456789", "$2a$04$CCCCCCCCCCCCCCCCCCCCC.lpe0HfwcxuE3anrbfKnZ5RNGANrs58i"),
    ("password", "$2b$05$abcdefghijklmnopqrstuuWG29KuyeAicPCJODk1zjyGvyQUU2awu"),
    ("pässwörd", "$2b$05$abcdefghijklmnopqrstuuZVEMa1pjhlynBQ1qXmSvGBJpN9h1w8G"),
    ("", "$2y$04$zyxwvutsrqponmlkjihgfegqtFzehKxsKXpkfUK8h7vC19esTTUBy"),
    ("a", "$2y$04$zyxwvutsrqponmlkjihgfe.G3/5BcLHfPdv93.10y9I2u.Y2stGti"),
    ("password", "$2y$04$zyxwvutsrqponmlkjihgfebabRUKNYWyzs3pDvxph4uY7jewJcbr2"),
    ("Hello world!", "$2y$04$zyxwvutsrqponmlkjihgfenKRz8nAXoieYeIyR73loG7De8xFf/5u"),
    ("a much longer password that goes beyond seventy-two bytes, as bcrypt counts them, really", "$2y$04$zyxwvutsrqponmlkjihgfemk.52k/RIMAl/rcWTuKb7FDrDaHirc."),
    ("pässwörd", "$2y$04$zyxwvutsrqponmlkjihgfem7wWFCcNWG2/TQ8BaVVwXB7mvtF/VsW"),
    ("12345678", "$2y$04$zyxwvutsrqponmlkjihgfeFl.BlkxKVbxVNh38hrT5KsL90ofREmO"),
    ("123456789", "$2y$04$zyxwvutsrqponmlkjihgfexdQEqlRi312rfXeC.UmlHsUj7TF.Q5i"),
    ("", "$y$j75$abcd$eCNABnCYh9Yg4ibb.2WZzfD1Qm8EmjGIsb4F81qkaL2"),
    ("Hello world!", "$y$j75$abcd$asLYZt5yFMNLuIzWmhXftv5HSGNQNrDv1hX.EhxQFO2"),
    ("12345678", "$y$j75$abcd$VrcUkO5Emc/Mel4P3nj8BgmGKBb1MP.7VoyoFT8Ul94"),
    ("a", "$y$j85$F5Jx5fExrKuPp53xLKQ..1$wmdjbgKXvcgZ4EzfHnmMqZNH1l5fOnezuSqKP.N6722"),
    ("a much longer password that goes beyond seventy-two bytes, as bcrypt counts them, really", "$y$j85$F5Jx5fExrKuPp53xLKQ..1$BLOkClzo5Y43SdW7cwuybH7nMfJGn1GOH2vwOYCJZRD"),
    ("123456789", "$y$j85$F5Jx5fExrKuPp53xLKQ..1$x/IPyVOHo33EO.a/PK90fUAXtPxLLp1K513tR7iIVd5"),
];

#[test]
fn passwords_are_told_from_others() {
    for (password, text) in ROWS {
        let hidden = PasswordHash::parse(text).expect("a form");
        assert!(hidden.is(password.as_bytes()), "{password} {text}");
        // DES uses eight bytes, of seven bits each.
        let other = format!("x{password}");
        assert!(!hidden.is(other.as_bytes()), "{other} {text}");
    }
}

#[test]
fn what_crypt_never_makes_is_nobodys() {
    for text in [
        "*",
        "!",
        "x",
        "",
        "ab",
        "a!bcdefghijkl",
        "_J9..XX",
        "$5$rounds=10$abc$x",
        "$5$rounds=01000$abc$x",
        "$2b$99$CCCCCCCCCCCCCCCCCCCCC.x",
        "$2b$04$short",
        "$y$j75$abcd$",
        "$1$abc$",
        "$6$rounds=$abc$x",
    ] {
        assert!(!PasswordHash::parse(text).is_ok_and(|hidden| hidden.is(b"")), "{text}");
        assert!(!PasswordHash::parse(text).is_ok_and(|hidden| hidden.is(b"password")), "{text}");
    }
    for (text, why) in [
        ("$7$CU..../....x", Unusable::Unsupported("scrypt")),
        ("$3$$8846f7eaee8fb117ad06bdd830b7586c", Unusable::Unsupported("NT")),
        ("$9$x", Unusable::Never),
        ("$y$jZ5$abcd$x", Unusable::Never),
    ] {
        assert_eq!(PasswordHash::parse(text), Err(why), "{text}");
    }
}

#[test]
fn a_password_ends_at_a_zero() {
    assert!(PasswordHash::parse("abJnggxhB/yWI").expect("a form").is(b"password\0more"));
}
