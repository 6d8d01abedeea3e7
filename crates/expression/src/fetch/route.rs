//! The fetch of a table of routes, Weir's own. Must never read the file once requests are served.

use super::Fetch;
use super::request::path_and_query;
use super::side::{REQUEST, head};
use crate::pattern::{Content, Lookup, Method, RouteRequest, Use};
use crate::sample::{Context, Places, Type, Value};
use crate::{Argument, Arguments, Checking, Kind, Signature};
use config::text::from_bytes;
use std::sync::Arc;

/// Every fetch of the family.
#[rustfmt::skip]
pub const TABLE: &[Fetch] = &[
    Fetch::new("req.route", Signature::new(1, &[Kind::Str]), Type::Str, Places::REQUEST, "Value of the entry of a table of routes that fits the request best. Weir's own.", route)
        .checked(load),
];

/// Loads the table that the argument names.
fn load(arguments: &mut Arguments, checking: &Checking<'_>) -> Result<(), String> {
    let name = from_bytes(arguments.text(0).unwrap_or_default());
    let lookup = checking.names.list(&name, Use::Map, Method::Route, false, Content::Text)?;
    arguments.set(0, Argument::Found(Arc::new(lookup)));
    Ok(())
}

fn route<'a>(context: &Context<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    let (table, head): (&Lookup, _) = (arguments.made(0)?, head::<REQUEST>(context)?);
    let target = path_and_query(head.target());
    let mut request = RouteRequest {
        host: head.host().unwrap_or_default(),
        method: head.method(),
        head: Some(head),
        charge: &|units| context.spend(units),
        ..RouteRequest::of_target(target.unwrap_or_default())
    };
    if target.is_some() && request.path.is_empty() {
        // Behind an authority an empty path means this one (RFC 9110, section 4.2.3).
        request.path = b"/";
    }
    table.route(context, &request).map(Value::Str)
}

#[cfg(test)]
mod tests {
    use crate::expression::tests::{Scene, check_rows};

    #[test]
    fn the_value_of_the_route_is_the_sample() {
        let scene = |target: &str, host: &str, fields: &[(&str, &str)]| {
            Scene::request("GET", target, &[&[("host", host)][..], fields].concat())
        };
        let route = "req.route(routes.map)";
        check_rows(&scene("/a/b?c", "example.com:80", &[]), &[(route, "a")]);
        check_rows(&scene("/a", "EXAMPLE.com", &[("x", "1")]), &[(route, "x")]);
        check_rows(&scene("http://example.com/a/c", "example.com", &[]), &[(route, "a")]);
        check_rows(&scene("http://example.com?c", "example.com", &[]), &[(route, "all")]);
        check_rows(&scene("/ab", "example.com", &[]), &[(route, "all")]);
        check_rows(&Scene::request("OPTIONS", "*", &[]), &[(route, "all"), ("req.route(virt@routes)", "<none>")]);
    }

    #[test]
    fn invalid_tables_are_refused_with_line_and_place() {
        let place = "at line 2 of file 'bad-routes.map'\n    a.b/;method:GET\n         ^";
        let why = "'method=', 'header:<name>', 'query:<name>' or 'order=' is expected after ';'";
        let message = format!("!invalid args in fetch method 'req.route' : {why} {place}");
        let missing = "!invalid args in fetch method 'req.route' : failed to open pattern file <none.map>";
        let rows = [("req.route(bad-routes.map)", &*message), ("req.route(none.map)", missing)];
        check_rows(&Scene::default(), &rows);
    }
}
