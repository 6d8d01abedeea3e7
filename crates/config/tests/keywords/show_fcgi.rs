//! Short form of FastCGI applications. Must never leave a field out.

use std::fmt::Write as _;

use weir_config::spec::FcgiAppSpec;

use super::{field, log, words};

/// An `fcgi-app` section.
pub fn show(app: &FcgiAppSpec, out: &mut String) {
    let FcgiAppSpec { span, name, docroot, index, path_info, acls, rules, logs_globally, logs, .. } = app;
    let FcgiAppSpec { keep_conn, get_values, shares_connections, max_requests, .. } = app;
    let _ = write!(out, "fcgi-app {} @{}", name.value, span.line);
    field(out, "docroot", docroot, &None);
    field(out, "index", index, &None);
    field(out, "path_info", &path_info.as_ref().map(|text| &text.value), &None);
    field(out, "acls", &acls.iter().map(words).collect::<Vec<_>>(), &Vec::new());
    field(out, "rules", &rules.iter().map(|rule| (rule.sets, words(&rule.line))).collect::<Vec<_>>(), &Vec::new());
    field(out, "logs_globally", logs_globally, &false);
    field(out, "keep_conn", keep_conn, &true);
    field(out, "get_values", get_values, &false);
    field(out, "shares_connections", shares_connections, &false);
    field(out, "max_requests", max_requests, &1);
    out.push('\n');
    logs.iter().for_each(|one| log(one, out));
}
