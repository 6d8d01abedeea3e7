//! The last log lines of failed requests. Must never show those of a proxy outside of `stats scope`.

use engine::service::log::{ErrorLine, MOST_ERROR_LINES};

use super::answer::{Answer, put};
use super::json::{Commas, Quoted, Seconds, lossy};
use super::request::{DashboardRequest, Target};

/// Default of `limit`: lines per answer.
const USUAL: usize = 100;

/// The lines that a request asks for.
#[derive(Debug, Default, PartialEq, Eq)]
struct Filter<'a> {
    /// Name of a frontend or a backend.
    proxy: Option<&'a str>,
    server: Option<&'a str>,
    status: Option<u16>,
    /// First digit of the status; 0: no status, or another one.
    class: Option<u16>,
    /// Beginning of the termination state.
    termination: Option<&'a str>,
}

impl<'a> Filter<'a> {
    /// Reads the filter of a query.
    ///
    /// # Errors
    /// The parameter that is invalid.
    fn read(target: &'a Target) -> Result<Self, &'static str> {
        let status = target.parameter("status").map(str::parse).transpose();
        let class = match target.parameter("class") {
            None => None,
            Some("4") => Some(4),
            Some("5") => Some(5),
            Some("other") => Some(0),
            Some(_) => return Err("'class' is 4, 5 or other"),
        };
        Ok(Self {
            proxy: target.parameter("proxy"),
            server: target.parameter("server"),
            status: status.map_err(|_| "'status' is a number")?,
            class,
            termination: target.parameter("termination"),
        })
    }

    fn wants(&self, line: &ErrorLine) -> bool {
        let class = Some(line.status / 100).filter(|class| matches!(class, 4 | 5)).unwrap_or(0);
        self.proxy.is_none_or(|proxy| *line.frontend == *proxy || *line.backend == *proxy)
            && self.server.is_none_or(|server| *line.server == *server)
            && self.status.is_none_or(|status| line.status == status)
            && self.class.is_none_or(|wanted| class == wanted)
            && self.termination.is_none_or(|begin| line.termination.starts_with(begin.as_bytes()))
    }
}

/// `errors`.
pub(super) async fn show(asked: DashboardRequest, mut answer: Answer) {
    let filter = match Filter::read(&asked.target) {
        Ok(filter) => filter,
        Err(why) => return answer.refuse(400, why),
    };
    let Ok(since) = asked.target.parameter("since").map_or(Ok(0), str::parse) else {
        return answer.refuse(400, "'since' is the number of a line");
    };
    let (last, mut lines) = asked.worker.process.log_targets.error_lines(since);
    lines.retain(|line| {
        let is_shown = asked.shows_name(&line.frontend) && asked.shows_name(&line.backend);
        is_shown && filter.wants(line)
    });
    let most = asked.target.number("limit", USUAL, MOST_ERROR_LINES);
    let skipped = lines.len().saturating_sub(most);
    answer.begin_json();
    answer.push(&format!("{{\"last\":{last},\"complete\":{},\"lines\":[", skipped == 0));
    let mut commas = Commas::default();
    for line in lines.iter().skip(skipped) {
        let mut text = commas.next().to_owned();
        write(line, &mut text);
        answer.push(&text);
        answer.relieve().await;
    }
    answer.push("]}\n");
}

fn write(line: &ErrorLine, out: &mut String) {
    let frontend = Quoted(&line.frontend);
    put(out, format_args!("{{\"id\":{},\"time\":{},\"frontend\":{frontend}", line.id, Seconds(line.time)));
    let named = |name: &str| !name.starts_with('<');
    for (name, text) in [("backend", &line.backend), ("server", &line.server)] {
        if !text.is_empty() && named(text) {
            put(out, format_args!(",\"{name}\":{}", Quoted(text)));
        }
    }
    let (termination, text) = (lossy(&line.termination), lossy(&line.line));
    put(
        out,
        format_args!(
            ",\"status\":{},\"termination\":{},\"line\":{}}}",
            line.status,
            Quoted(&termination),
            Quoted(&text)
        ),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dashboard::request::pairs;

    #[test]
    fn filters_select_lines() {
        let line = |status, termination: &[u8; 4], server: &str| ErrorLine {
            id: 1,
            time: base::WallTime::default(),
            frontend: "f".into(),
            backend: "b".into(),
            server: server.into(),
            status,
            termination: *termination,
            line: b"x"[..].into(),
        };
        let lines =
            [line(503, b"SC--", "s1"), line(404, b"----", "s2"), line(200, b"SD--", "s1"), line(0, b"CR--", "<NOSRV>")];
        let wanted: &[(&str, Result<&[usize], &str>)] = &[
            ("", Ok(&[0, 1, 2, 3])),
            ("proxy=f", Ok(&[0, 1, 2, 3])),
            ("proxy=b&server=s1", Ok(&[0, 2])),
            ("proxy=x", Ok(&[])),
            ("class=5", Ok(&[0])),
            ("class=4", Ok(&[1])),
            ("class=other", Ok(&[2, 3])),
            ("status=404", Ok(&[1])),
            ("termination=S", Ok(&[0, 2])),
            ("termination=SD", Ok(&[2])),
            ("termination=SD-----", Ok(&[])),
            ("class=6", Err("'class' is 4, 5 or other")),
            ("status=x", Err("'status' is a number")),
            ("status=70000", Err("'status' is a number")),
        ];
        for (query, wanted) in wanted {
            let target = Target { names: Vec::new(), query: pairs(query.as_bytes()) };
            let found = Filter::read(&target)
                .map(|filter| (0..lines.len()).filter(|at| filter.wants(&lines[*at])).collect::<Vec<_>>());
            assert_eq!(found, wanted.map(<[usize]>::to_vec), "{query}");
        }
    }
}
