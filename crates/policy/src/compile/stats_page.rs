//! Compiles the `stats` lines of a proxy to its statistics page. Must never render a page.

use super::Compiler;
use super::names::{Reach, SpecNames};
use super::places::{named_place, place};
use crate::program::StatsPage;
use crate::rule::Final;
use config::diagnostic::{Diagnostic, Form};
use config::keyword::rule::HTTP_REQUEST;
use config::spec::{GlobalSpec, ProxySpec, StatsPageSpec};
use config::text;

/// Default of `stats uri`.
const URI: &str = "/haproxy?stats";
/// Default of `stats realm`.
const REALM: &str = "HAProxy Statistics";

impl Compiler<'_> {
    /// Compiles the statistics page of one proxy.
    pub(super) fn stats_page(
        &mut self,
        global: &GlobalSpec,
        written: &ProxySpec,
        reach: &Reach,
        names: &SpecNames<'_>,
    ) -> Option<Box<StatsPage>> {
        let page: &StatsPageSpec = written.stats.as_ref()?;
        if page.dashboard && !page.admin.is_empty() && page.accounts.is_empty() && page.rules.is_empty() {
            let message = format!(
                "Proxy '{}': 'stats admin' with 'stats dashboard' but without 'stats auth' or 'stats http-request': pages of \
                 other sites whose names resolve to this address can change servers.",
                written.name.value
            );
            self.out.push(Diagnostic::warning(written.span, message).with_form(Form::Bare));
        }
        let rules = page.rules.iter().filter_map(|rule| self.rule(rule, written, reach, names)).collect();
        let what = "error detected while parsing a 'stats admin' rule";
        let place = place(HTTP_REQUEST, written.kind);
        let admin = page.admin.iter().filter_map(|line| {
            let condition = self.bare_condition(line, &line.words, reach, names, what)?;
            self.warn_of_misfit(Some(&condition), &line.words, place, named_place(place, written), "", written);
            Some(condition)
        });
        let own = &written.name.value;
        let scope = page.scope.iter().map(|name| if name == "." { own.as_str() } else { name.as_str() });
        let global_or = |said: &Option<Option<String>>, global: &Option<String>| -> Option<Box<str>> {
            let own = said.as_ref()?.as_ref();
            own.or(global.as_ref()).map(|text| text.as_str().into())
        };
        let bytes = |text: &str| -> Box<[u8]> { text::to_bytes(text).into_owned().into() };
        Some(Box::new(StatsPage {
            uri: bytes(page.uri.as_deref().unwrap_or(URI)),
            rules,
            // An account without a password has an empty one.
            accounts: page
                .accounts
                .iter()
                .map(|one| if one.contains(':') { bytes(one) } else { bytes(&format!("{one}:")) })
                .collect(),
            challenge: Final::Challenge(bytes(page.realm.as_deref().unwrap_or(REALM))),
            admin: admin.collect(),
            scope: scope.map(Into::into).collect(),
            refresh: page.refresh,
            dashboard: page.dashboard,
            shows_version: page.shows_version,
            shows_legends: page.shows_legends,
            shows_modules: page.shows_modules,
            node: global_or(&page.node, &global.node),
            description: global_or(&page.description, &global.description),
        }))
    }
}
