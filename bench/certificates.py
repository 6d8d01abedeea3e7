#!/usr/bin/env python3
"""Records how HAProxy verifies valid and invalid certificate chains, and the names of servers.

    bench/certificates.py HAPROXY [FOLDER]

Writes `chains.txt` and `hosts.txt` into FOLDER (`crates/tls/tests/table`), which tests of Weir read. `chains.txt` contains for every kind
of chain the files of the line and the chain that a client presents, as numbers of the Base64 lines at its beginning; `ssl_c_verify`,
`ssl_c_err`, `ssl_c_ca_err` and `ssl_c_ca_err_depth` if every error is ignored, and the alert if none is; and the alert of the same chain, or
`open`, for a `server` line. `hosts.txt` contains the names of a certificate, the SNI of the handshake, `verifyhost`, and whether the server
was accepted. Needs Python's `cryptography`. Listeners are UNIX sockets in a temporary folder.
"""

import argparse
import datetime
import hashlib
import ipaddress
import os
import re
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID as Use
from cryptography.x509.oid import NameOID, ObjectIdentifier

BEGIN, END = datetime.datetime(2020, 1, 1), datetime.datetime(2100, 1, 1)
PAST, FUTURE = datetime.datetime(2021, 1, 1), datetime.datetime(2090, 1, 1)
ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551


def key_of(seed):
    number = int.from_bytes(hashlib.sha256(seed.encode()).digest(), "big") % ORDER
    return ec.derive_private_key(number, ec.SECP256R1())


def pem(thing):
    if hasattr(thing, "private_bytes"):
        form = serialization.PrivateFormat.PKCS8
        return thing.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()).decode()
    return thing.public_bytes(serialization.Encoding.PEM).decode()


def name(text, kind=x509.name._ASN1Type.UTF8String):
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text, kind)])


LEAF_KEY = key_of("leaf")
SERIALS = iter(range(1000, 100000))


def usage(*wanted):
    all = ["digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement",
           "key_cert_sign", "crl_sign", "encipher_only", "decipher_only"]
    return x509.KeyUsage(**{one: one in wanted for one in all})


def make(subject, issuer=None, key=None, signer=None, ca=None, path=None, ku=None, eku=None, begin=BEGIN, end=END,
         extra=(), issuer_name=None, akid=True, skid=True, serial=None):
    """A certificate; `issuer` is another object of this class."""
    key = key or key_of(subject if isinstance(subject, str) else str(subject))
    own = name(subject) if isinstance(subject, str) else subject
    above = issuer_name or (issuer["cert"].subject if issuer else own)
    signer = signer or (issuer["key"] if issuer else key)
    builder = (x509.CertificateBuilder().subject_name(own).issuer_name(above).public_key(key.public_key())
               .serial_number(serial or next(SERIALS)).not_valid_before(begin).not_valid_after(end))
    if ca is not None:
        builder = builder.add_extension(x509.BasicConstraints(ca=ca, path_length=path), critical=True)
    if ku:
        builder = builder.add_extension(usage(*ku), critical=True)
    if eku:
        builder = builder.add_extension(x509.ExtendedKeyUsage(eku), critical=False)
    if skid:
        builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    if akid is True:
        akid = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key())
    if akid:
        builder = builder.add_extension(akid, critical=False)
    for extension, critical in extra:
        builder = builder.add_extension(extension, critical=critical)
    certificate = builder.sign(signer, hashes.SHA256())
    return {"cert": certificate, "key": key}


def crl(issuer, revoked=(), begin=BEGIN, end=END, key=None, extra=()):
    builder = (x509.CertificateRevocationListBuilder().issuer_name(issuer["cert"].subject)
               .last_update(begin).next_update(end))
    for one in revoked:
        entry = x509.RevokedCertificateBuilder().serial_number(one["cert"].serial_number).revocation_date(BEGIN).build()
        builder = builder.add_revoked_certificate(entry)
    for extension, critical in extra:
        builder = builder.add_extension(extension, critical=critical)
    return builder.sign(key or issuer["key"], hashes.SHA256())


def damaged(certificate):
    """Returns the same certificate with another signature."""
    der = bytearray(certificate["cert"].public_bytes(serialization.Encoding.DER))
    der[-1] ^= 1
    return {"cert": x509.load_der_x509_certificate(bytes(der)), "key": certificate["key"]}


def san(*names):
    out = []
    for one in names:
        try:
            out.append(x509.IPAddress(ipaddress.ip_address(one)))
        except ValueError:
            out.append(x509.DNSName(one))
    return x509.SubjectAlternativeName(out)


class Cases:
    """Kinds of chains: name, ca-file, chain, crl-file, ca-verify-file."""

    def __init__(self):
        self.all = []
        root = self.root = make("root", ca=True)
        inter = self.inter = make("intermediate", root, ca=True)
        self.leaf = lambda issuer=inter, **more: make("leaf", issuer, key=LEAF_KEY, **more)
        leaf = self.leaf()
        direct = self.leaf(root)
        self.add("good", [root], [leaf, inter])
        self.add("good, direct", [root], [direct])
        self.add("good, intermediate in ca-file", [root, inter], [leaf])
        self.add("good, root sent", [root], [leaf, inter, root])
        self.add("good, others sent", [root], [leaf, make("stranger", ca=True), root, inter])
        self.add("intermediate alone, sent", [inter], [leaf, inter])
        self.add("intermediate alone", [inter], [leaf])
        self.add("intermediate alone, its own", [inter], [{"cert": inter["cert"], "key": inter["key"]}])
        self.add("leaf alone", [leaf], [leaf])
        self.add("leaf alone, chain sent", [leaf], [leaf, inter, root])
        self.add("no intermediate", [root], [leaf])
        self.add("stranger", [make("another root", ca=True)], [leaf, inter])
        self.add("stranger, root sent", [make("another root", ca=True)], [leaf, inter, root])
        self.add("ends in ca-verify-file", [inter], [leaf], verify=[root])
        self.add("ends in ca-verify-file, sent", [inter], [leaf, inter], verify=[root])
        self.add("both in ca-verify-file", [make("another root", ca=True)], [leaf], verify=[root, inter])
        self.add("intermediate in ca-verify-file", [make("another root", ca=True)], [leaf], verify=[inter])
        own = make("self", key=LEAF_KEY)
        own_ca = make("self", key=LEAF_KEY, ca=True)
        self.add("self-signed", [root], [own])
        self.add("self-signed CA", [root], [own_ca])
        self.add("self-signed, in ca-file", [own], [own])
        self.add("self-signed CA, in ca-file", [own_ca], [own_ca])
        self.add("self-signed, another of that name in ca-file", [make("self", key=key_of("x"), ca=True)], [own_ca])
        self.add("CA as leaf", [root], [self.leaf(ca=True), inter])
        self.add("no CA in the middle", [root], [self.leaf(make("bad", root, ca=False)), make("bad", root, ca=False)])
        plain = make("plain", root)
        self.add("no constraints in the middle", [root], [self.leaf(plain), plain])
        for (title, ku) in [("may not sign", ["digital_signature"]), ("may sign lists alone", ["crl_sign"])]:
            one = make("limited", root, ca=True, ku=ku)
            self.add(title, [root], [self.leaf(one), one])
        no_sign = make("limited root", ca=True, ku=["crl_sign"])
        self.add("root may not sign", [no_sign], [self.leaf(no_sign)])
        short = make("short", root, ca=True, path=0)
        under = make("under", short, ca=True)
        self.add("path too long", [root], [self.leaf(under), under, short])
        self.add("path just fits", [root], [self.leaf(short), short])
        short_root = make("short root", ca=True, path=0)
        under = make("under", short_root, ca=True)
        self.add("path of the root too long", [short_root], [self.leaf(under), under])
        no_ca_root = make("root without CA", ca=False)
        self.add("root is no CA", [no_ca_root], [self.leaf(no_ca_root)])
        bare_root = make("bare root")
        self.add("root without constraints", [bare_root], [self.leaf(bare_root)])
        self.add("expired", [root], [self.leaf(end=PAST), inter])
        self.add("not yet valid", [root], [self.leaf(begin=FUTURE), inter])
        old = make("old", root, ca=True, end=PAST)
        self.add("expired intermediate", [root], [self.leaf(old), old])
        early = make("early", root, ca=True, begin=FUTURE)
        self.add("intermediate not yet valid", [root], [self.leaf(early), early])
        old_root = make("old root", ca=True, end=PAST)
        self.add("expired root", [old_root], [self.leaf(old_root)])
        self.add("expired root and leaf", [old_root], [self.leaf(old_root, end=PAST)])
        renewed = make("renewed", root, ca=True)
        expired = make("renewed", root, ca=True, end=PAST)
        self.add("expired and renewed intermediate", [root], [self.leaf(renewed), expired, renewed])
        self.add("expired root renewed", [make("root", key=root["key"], ca=True, end=PAST), root], [direct])
        self.add("bad signature", [root], [damaged(leaf), inter])
        self.add("bad signature in the middle", [root], [leaf, damaged(inter)])
        self.add("signed by another key", [root], [self.leaf(signer=key_of("wrong"), akid=False), inter])
        self.add("another key of the issuer", [root], [self.leaf(root, signer=key_of("wrong"))])
        other = x509.AuthorityKeyIdentifier(None, [x509.DirectoryName(name("root"))], 99)
        self.add("another serial of the issuer", [root], [self.leaf(root, akid=other)])
        same = x509.AuthorityKeyIdentifier(None, [x509.DirectoryName(name("root"))], root["cert"].serial_number)
        self.add("the serial of the issuer", [root], [self.leaf(root, akid=same)])
        for title, eku in [("for servers", [Use.SERVER_AUTH]), ("for clients", [Use.CLIENT_AUTH]),
                           ("for both", [Use.SERVER_AUTH, Use.CLIENT_AUTH]), ("for mail", [Use.EMAIL_PROTECTION]),
                           ("for anything", [Use.ANY_EXTENDED_KEY_USAGE])]:
            self.add(title, [root], [self.leaf(eku=eku), inter])
            one = make("purpose", root, ca=True, eku=eku)
            self.add(title + ", intermediate", [root], [self.leaf(one), one])
        for_mail = make("purpose root", ca=True, eku=[Use.EMAIL_PROTECTION])
        self.add("for mail, root", [for_mail], [self.leaf(for_mail)])
        for ku in ["digital_signature", "key_encipherment", "key_agreement", "content_commitment", "data_encipherment",
                   "key_cert_sign"]:
            self.add("usage " + ku, [root], [self.leaf(ku=[ku]), inter])
        unknown = (x509.UnrecognizedExtension(ObjectIdentifier("1.2.3.4"), b"\x05\x00"), True)
        self.add("unknown critical extension", [root], [self.leaf(extra=[unknown]), inter])
        one = make("critical", root, ca=True, extra=[unknown])
        self.add("unknown critical extension in the middle", [root], [self.leaf(one), one])
        one = make("critical root", ca=True, extra=[unknown])
        self.add("unknown critical extension of the root", [one], [self.leaf(one)])
        self.add("unknown extension", [root], [self.leaf(extra=[(unknown[0], False)]), inter])
        printable = name("Root  Name", x509.name._ASN1Type.PrintableString)
        spaced = make(name("root name"), ca=True)
        self.add("issuer in another case and form", [spaced], [self.leaf(spaced, issuer_name=printable)])
        loop_a = make("loop a", issuer_name=name("loop b"), signer=key_of("loop b"), ca=True, akid=False)
        loop_b = make("loop b", issuer_name=name("loop a"), signer=key_of("loop a"), ca=True, akid=False)
        self.add("loop", [root], [self.leaf(loop_a), loop_a, loop_b])
        self.add("loop in ca-file", [loop_a, loop_b], [self.leaf(loop_a)])
        cross = make("root", make("old top", ca=True), key=root["key"], ca=True)
        self.add("cross-signed root sent", [root], [leaf, inter, cross])
        self.add("cross-signed root alone", [cross], [leaf, inter])
        self.constraints()
        self.lists(root, inter, leaf, direct)
        weak = rsa.generate_private_key(65537, 1024)
        self.add("short key", [root], [make("leaf", inter, key=weak), inter])
        weak_ca = make("weak", root, key=weak, ca=True)
        self.add("short key of an issuer", [root], [self.leaf(weak_ca), weak_ca])

    def constraints(self):
        root = self.root

        def under(title, allowed=None, excluded=None, own=(), common="leaf"):
            limits = x509.NameConstraints(allowed, excluded)
            one = make("constrained", root, ca=True, extra=[(limits, True)])
            extra = [(x509.SubjectAlternativeName(list(own)), False)] if own else []
            leaf = make(common, one, key=LEAF_KEY, extra=extra)
            self.add(title, [root], [leaf, one])

        dns, mail, ip = x509.DNSName, x509.RFC822Name, x509.IPAddress
        net = ipaddress.ip_network
        under("names: below", [dns("a.example")], None, [dns("x.a.example")])
        under("names: equal", [dns("a.example")], None, [dns("A.example")])
        under("names: beside", [dns("a.example")], None, [dns("xa.example")])
        under("names: with a dot", [dns(".a.example")], None, [dns("x.a.example")])
        under("names: one of two", [dns("a.example")], None, [dns("a.example"), dns("b.example")])
        under("names: excluded", None, [dns("b.example")], [dns("x.b.example")])
        under("names: not excluded", None, [dns("b.example")], [dns("a.example")])
        under("names: another kind", [dns("a.example")], None, [mail("who@b.example")])
        under("names: common name", [dns("a.example")], None, (), "b.example")
        under("names: common name below", [dns("a.example")], None, (), "x.a.example")
        under("names: common name that is no host", [dns("a.example")], None, (), "some one")
        under("names: common name beside others", [dns("a.example")], None, [dns("a.example")], "b.example")
        under("addresses: within", [ip(net("192.0.2.0/24"))], None, [ip(ipaddress.ip_address("192.0.2.7"))])
        under("addresses: without", [ip(net("192.0.2.0/24"))], None, [ip(ipaddress.ip_address("192.0.3.7"))])
        under("addresses: excluded", None, [ip(net("2001:db8::/32"))], [ip(ipaddress.ip_address("2001:db8::1"))])
        under("mail: host", [mail("a.example")], None, [mail("who@a.example")])
        under("mail: other host", [mail("a.example")], None, [mail("who@x.a.example")])
        under("mail: below", [mail(".a.example")], None, [mail("who@x.a.example")])
        under("mail: box", [mail("who@a.example")], None, [mail("other@a.example")])
        uri = x509.UniformResourceIdentifier
        under("uri: host", [uri("a.example")], None, [uri("https://a.example/x")])
        under("uri: other", [uri("a.example")], None, [uri("https://b.example/x")])
        under("uri: below", [uri(".a.example")], None, [uri("https://x.a.example:8443/x")])
        org = x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Example")
        tree = x509.DirectoryName(x509.Name([org]))
        under("directory: within", [tree], None, (), x509.Name([org, x509.NameAttribute(NameOID.COMMON_NAME, "leaf")]))
        under("directory: without", [tree], None, (), "leaf")
        under("directory: excluded", None, [tree], (), x509.Name([org, x509.NameAttribute(NameOID.COMMON_NAME, "l")]))
        under("registered id", [x509.RegisteredID(ObjectIdentifier("1.2.3"))], None,
              [x509.RegisteredID(ObjectIdentifier("1.2.3"))])

    def lists(self, root, inter, leaf, direct):
        good, empty = crl(inter), crl(root)
        self.add("lists: good", [root], [leaf, inter], crls=[good, empty])
        self.add("lists: direct", [root], [direct], crls=[empty])
        self.add("lists: none of the intermediate", [root], [leaf, inter], crls=[empty])
        self.add("lists: none of the root", [root], [leaf, inter], crls=[good])
        self.add("lists: revoked", [root], [leaf, inter], crls=[crl(inter, [leaf]), empty])
        self.add("lists: revoked intermediate", [root], [leaf, inter], crls=[good, crl(root, [inter])])
        self.add("lists: revoked root", [root], [leaf, inter], crls=[good, crl(root, [root])])
        self.add("lists: both revoked", [root], [leaf, inter], crls=[crl(inter, [leaf]), crl(root, [inter])])
        self.add("lists: expired", [root], [leaf, inter], crls=[crl(inter, end=PAST), empty])
        self.add("lists: expired and revoked", [root], [leaf, inter], crls=[crl(inter, [leaf], end=PAST), empty])
        self.add("lists: not yet", [root], [leaf, inter], crls=[crl(inter, begin=FUTURE), empty])
        self.add("lists: expired of the root", [root], [leaf, inter], crls=[good, crl(root, end=PAST)])
        self.add("lists: expired and renewed", [root], [leaf, inter], crls=[crl(inter, end=PAST), good, empty])
        self.add("lists: bad signature", [root], [leaf, inter], crls=[crl(inter, key=key_of("wrong")), empty])
        unknown = (x509.UnrecognizedExtension(ObjectIdentifier("1.2.3.4"), b"\x05\x00"), True)
        self.add("lists: unknown critical extension", [root], [leaf, inter], crls=[crl(inter, extra=[unknown]), empty])
        none = make("no lists", root, ca=True, ku=["key_cert_sign"])
        own = self.leaf(none)
        self.add("lists: issuer may not sign lists", [root], [own, none], crls=[crl(none), empty])

        def scope(**wanted):
            kinds = ["only_contains_user_certs", "only_contains_ca_certs", "indirect_crl",
                     "only_contains_attribute_certs"]
            return (x509.IssuingDistributionPoint(wanted.get("point"), None, only_some_reasons=None,
                                                  **{kind: kind in wanted for kind in kinds}), True)

        user, authority = scope(only_contains_user_certs=1), scope(only_contains_ca_certs=1)
        self.add("lists: of users", [root], [leaf, inter], crls=[crl(inter, extra=[user]), empty])
        self.add("lists: of users, revoked", [root], [leaf, inter], crls=[crl(inter, [leaf], extra=[user]), empty])
        self.add("lists: of authorities", [root], [leaf, inter], crls=[crl(inter, extra=[authority]), empty])
        self.add("lists: of authorities, root", [root], [leaf, inter], crls=[good, crl(root, extra=[authority])])
        point = [x509.UniformResourceIdentifier("http://a.example/1.crl")]
        of_point = scope(point=point, only_contains_user_certs=1)
        self.add("lists: of a point", [root], [leaf, inter], crls=[crl(inter, extra=[of_point]), empty])
        points = x509.CRLDistributionPoints([x509.DistributionPoint(point, None, None, None)])
        pointed = self.leaf(extra=[(points, False)])
        self.add("lists: of its point", [root], [pointed, inter], crls=[crl(inter, extra=[of_point]), empty])
        self.add("lists: of its point, revoked", [root], [pointed, inter],
                 crls=[crl(inter, [pointed], extra=[of_point]), empty])
        delta = (x509.DeltaCRLIndicator(1), True)
        self.add("lists: a change alone", [root], [leaf, inter], crls=[crl(inter, extra=[delta]), empty])
        own_ca = make("self", key=LEAF_KEY, ca=True)
        self.add("lists: none for a self-signed", [own_ca], [own_ca], crls=[empty])
        self.add("lists: stranger", [make("another root", ca=True)], [leaf, inter], crls=[good, empty])
        self.add("lists: expired leaf, revoked", [root], [self.leaf(end=PAST, serial=77), inter],
                 crls=[crl(inter, [{"cert": self.leaf(serial=77)["cert"]}]), empty])

    def add(self, title, authorities, chain, crls=(), verify=()):
        self.all.append({"name": title, "ca": "".join(pem(one["cert"]) for one in authorities),
                         "verify": "".join(pem(one["cert"]) for one in verify),
                         "crl": "".join(pem(one) for one in crls),
                         "chain": "".join(pem(one["cert"]) for one in chain), "key": pem(chain[0]["key"])})


HOSTS = [
    # The common name, the other names.
    ("a.example", []), ("none", ["a.example"]), ("none", ["*.example"]), ("*.example", []), ("none", ["w*.example"]),
    ("none", ["*w.example"]), ("none", ["w*w.example"]), ("none", ["a.*.example"]), ("none", ["*"]), ("none", ["*.*"]),
    ("a.example", ["b.example"]), ("none", ["A.Example"]), ("none", ["127.0.0.1"]), ("127.0.0.1", []),
    ("none", ["xn--*.example"]), ("none", ["*.a.example"]),
]
WANTED = [("sni", None), ("sni", "a.example"), ("sni", "A.EXAMPLE"), ("sni", "b.example"), ("sni", "ww.example"),
          ("sni", "www.example"), ("sni", "w.example"), ("sni", "x.a.example"), ("sni", "a.b.example"), ("sni", "example"),
          ("sni", "127.0.0.1"), ("sni", "a.example."), ("sni", "xn--a.example"), ("sni", "")]
STATIC = [None, "a.example", "b.example", "127.0.0.1", "WWW.example", "x.a.example", "a.example."]


def write(folder, file, text):
    path = os.path.join(folder, file)
    with open(path, "w") as out:
        out.write(text)
    return path


def start(haproxy, folder, text, ready):
    config = write(folder, "haproxy.cfg", text)
    log = open(os.path.join(folder, "log"), "w")
    process = subprocess.Popen([haproxy, "-db", "-f", config], stdout=log, stderr=log)
    for _ in range(200):
        try:
            with socket.socket(socket.AF_UNIX) as one:
                one.connect(ready)
            return process
        except OSError:
            if process.poll() is not None:
                break
            time.sleep(0.05)
    process.kill()
    sys.exit(open(os.path.join(folder, "log")).read())


def ask(path, case, folder):
    """Returns the body of the response, or the alert."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("DEFAULT:@SECLEVEL=0")
    context.load_cert_chain(write(folder, "client.pem", case["chain"] + case["key"]))
    try:
        with socket.socket(socket.AF_UNIX) as one:
            one.settimeout(5)
            one.connect(path)
            with context.wrap_socket(one) as tls:
                tls.sendall(b"GET / HTTP/1.0\r\n\r\n")
                answer = b""
                while piece := tls.recv(65536):
                    answer += piece
                return answer.split(b"\r\n\r\n")[-1].decode().strip()
    except (ssl.SSLError, OSError) as error:
        found = re.search(r"\[SSL: (\w+)\]", str(error))
        return found.group(1).lower() if found else type(error).__name__


def serve(path, context, answers):
    """A server that closes each connection after a response, and records the results of its handshakes."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(64)

    def run():
        while True:
            one, _ = listener.accept()
            one.settimeout(5)
            try:
                with context.wrap_socket(one, server_side=True) as tls:
                    tls.recv(65536)
                    answers[path] = "open"
                    tls.sendall(b"HTTP/1.0 200 OK\r\n\r\n")
            except (ssl.SSLError, OSError) as error:
                found = re.search(r"\[SSL: (\w+)\]", str(error))
                answers[path] = found.group(1).lower() if found else type(error).__name__

    threading.Thread(target=run, daemon=True).start()


def get(path):
    with socket.socket(socket.AF_UNIX) as one:
        one.settimeout(10)
        one.connect(path)
        one.sendall(b"GET / HTTP/1.0\r\n\r\n")
        answer = b""
        while piece := one.recv(65536):
            answer += piece
        return answer[9:12].decode()


def server_context(folder, chain, key):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("DEFAULT:@SECLEVEL=0")
    context.load_cert_chain(write(folder, "server.pem", chain + key))
    return context


TIMES = "defaults\n mode http\n timeout connect 5s\n timeout client 5s\n timeout server 5s\n"
PROBE = (' http-request return status 200 content-type text/plain lf-string '
         '"%[ssl_c_verify] %[ssl_c_err] %[ssl_c_ca_err] %[ssl_c_ca_err_depth]"\n')


def record_chains(haproxy, folder, out):
    cases, site = Cases().all, make("site", ca=True)
    own = write(folder, "site.pem", pem(site["cert"]) + pem(site["key"]))
    text, answers = TIMES, {}
    for number, case in enumerate(cases):
        files = f"ca-file {write(folder, f'{number}.ca', case['ca'])}"
        if case["crl"]:
            files += f" crl-file {write(folder, f'{number}.crl', case['crl'])}"
        extra = f" ca-verify-file {write(folder, f'{number}.verify', case['verify'])}" if case["verify"] else ""
        for kind, more in [("strict", "verify required"), ("ignore", "verify optional crt-ignore-err all ca-ignore-err all")]:
            text += f"frontend {kind}{number}\n bind unix@{folder}/{kind}{number} ssl crt {own} {more} {files}{extra}\n{PROBE}"
        if not case["verify"]:
            serve(f"{folder}/origin{number}", server_context(folder, case["chain"], case["key"]), answers)
            text += (f"listen server{number}\n bind unix@{folder}/server{number}\n retries 0\n"
                     f" server s unix@{folder}/origin{number} ssl verify required no-sni-auto {files}\n")
    last = f"{folder}/ignore{len(cases) - 1}"
    process = start(haproxy, folder, text, last)
    try:
        for number, case in enumerate(cases):
            strict = ask(f"{folder}/strict{number}", case, folder)
            ignored = ask(f"{folder}/ignore{number}", case, folder)
            server = "-"
            if not case["verify"]:
                get(f"{folder}/server{number}")
                for _ in range(500):
                    server = answers.get(f"{folder}/origin{number}", "?")
                    if server != "?":
                        break
                    time.sleep(0.01)
            case["results"] = f"strict: {'open' if strict == '0 0 0 0' else strict}\nignored: {ignored}\nserver: {server}\n"
            print(case["name"], "|", strict, "|", ignored, "|", server)
    finally:
        process.kill()
    write_chains(cases, out)


def write_chains(cases, out):
    """Formats every certificate, list and key once, as a line of Base64, and the cases with their numbers."""
    known, rows = {}, []

    def numbers(text):
        found = []
        for body in re.findall(r"-----BEGIN [A-Z0-9 ]+-----\n(.*?)-----END", text, re.S):
            found.append(str(known.setdefault(body.replace("\n", ""), len(known))))
        return " ".join(found)

    for case in cases:
        files = "".join(f"{part}: {numbers(case[part])}\n" for part in ["ca", "verify", "crl", "chain", "key"])
        rows.append(f"== {case['name']}\n{case['results']}{files}")
    with open(os.path.join(out, "chains.txt"), "w") as file:
        file.write("".join(f"{body}\n" for body in known) + "".join(rows))


def record_hosts(haproxy, folder, out):
    root = make("root", ca=True)
    authorities = write(folder, "hosts.ca", pem(root["cert"]))
    text, rows, answers = TIMES, [], {}
    for number, (common, others) in enumerate(HOSTS):
        extra = [(san(*others), False)] if others else []
        own = make(common, root, key=LEAF_KEY, extra=extra)
        serve(f"{folder}/host{number}", server_context(folder, pem(own["cert"]), pem(own["key"])), answers)
        for _, sni in WANTED:
            for static in STATIC:
                place = len(rows)
                rows.append((common, others, sni, static, number))
                line = f"server s unix@{folder}/host{number} ssl verify required ca-file {authorities}"
                line += f" sni str({sni})" if sni is not None else " no-sni-auto"
                line += f" verifyhost {static}" if static else ""
                text += f"listen l{place}\n bind unix@{folder}/l{place}\n retries 0\n {line}\n"
    process = start(haproxy, folder, text, f"{folder}/l{len(rows) - 1}")
    try:
        with open(os.path.join(out, "hosts.txt"), "w") as file:
            for place, (common, others, sni, static, number) in enumerate(rows):
                status = get(f"{folder}/l{place}")
                believed = {"200": "believed", "503": "refused"}[status]
                words = [common, ",".join(others) or "-", "-" if sni is None else sni or "''", static or "-", believed]
                file.write("\t".join(words) + "\n")
    finally:
        process.kill()


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("haproxy", help="a program of HAProxy 3.5")
    parser.add_argument("folder", nargs="?", default=os.path.join(here, "../crates/tls/tests/table"))
    options = parser.parse_args()
    haproxy, out = options.haproxy, options.folder
    os.makedirs(out, exist_ok=True)
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        record_chains(haproxy, folder, out)
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        record_hosts(haproxy, folder, out)


if __name__ == "__main__":
    main()
