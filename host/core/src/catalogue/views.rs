//! What sessions may see of a catalogue: made once for all that see the same, kept with it, and gone with it.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use super::Catalogue;
use crate::{digest::Digest, gate::SessionRules, names::ServerName};

/// Most views that are kept. Sessions of one policy that differ in labels which no rule asks for share one.
const KEPT: usize = 64;

/// By the rules, and the name of the server: rules may say different things of two servers that offer the same.
#[derive(Debug, Default)]
pub(super) struct Views(Mutex<HashMap<(Digest, ServerName), View>>);

#[derive(Debug, Clone)]
enum View {
    /// All of it: it holds no copy, and not itself.
    Whole,
    Part(Arc<Catalogue>),
}

impl Catalogue {
    /// What these rules leave to be seen of it, as [`Catalogue::seen_by`] says.
    #[must_use]
    pub fn view(self: &Arc<Self>, rules: &SessionRules, server: &ServerName) -> Arc<Self> {
        if !rules.hides() {
            return Arc::clone(self);
        }
        let mut views = self.views.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (rules.digest(), server.clone());
        let view = match views.get(&key) {
            Some(view) => view.clone(),
            None => {
                let left = self.seen_by(rules, server.as_str());
                let view = if left.is_all_of(self) { View::Whole } else { View::Part(Arc::new(left)) };
                if views.len() >= KEPT {
                    views.clear();
                }
                views.insert(key, view.clone());
                view
            }
        };
        match view {
            View::Whole => Arc::clone(self),
            View::Part(left) => left,
        }
    }

    /// Whether a part of another one is all of it.
    fn is_all_of(&self, other: &Self) -> bool {
        let counts = |one: &Self| {
            [one.tools.len(), one.resources.len(), one.templates.len(), one.prompts.len(), one.changed.len()]
        };
        counts(self) == counts(other) && self.listed_only == other.listed_only
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Weak;

    use super::*;
    use crate::{limits::ServerLimits, names::Labels, policy_file::policies_of};

    fn rules(text: &str, team: &str) -> SessionRules {
        let policies = policies_of(text).unwrap();
        SessionRules::new(policies.get("p").unwrap(), &Labels::from([("team".to_owned(), team.to_owned())]))
    }

    fn catalogue() -> Arc<Catalogue> {
        let mut catalogue = Catalogue::default();
        for name in ["a", "b"] {
            let tool = format!(r#"{{"name":"{name}","inputSchema":{{}}}}"#);
            catalogue
                .add_tool(&serde_json::value::RawValue::from_string(tool).unwrap(), &ServerLimits::default())
                .unwrap();
        }
        Arc::new(catalogue)
    }

    const HIDES: &str = "[[policies.p.rules]]\ntool = 'a'\nserver = 's'\ndecision = 'hide'\nlabels = { team = 'x*' }\n";

    #[test]
    fn whoever_sees_the_same_shares_it_and_it_goes_with_its_catalogue() {
        let (s, other) = ("s".parse().unwrap(), "other".parse().unwrap());
        let all = catalogue();
        let seen = all.view(&rules(HIDES, "x1"), &s);
        assert!(seen.tool("a").is_none() && seen.tool("b").is_some());
        assert!(Arc::ptr_eq(&seen, &all.view(&rules(HIDES, "x2"), &s)), "the same rules are for both");
        assert!(Arc::ptr_eq(&all, &all.view(&rules(HIDES, "y"), &s)), "nothing is hidden from this one");
        assert!(Arc::ptr_eq(&all, &all.view(&rules(HIDES, "x1"), &other)), "nothing of this server is hidden");
        let gone: Weak<Catalogue> = Arc::downgrade(&seen);
        drop((seen, all));
        assert!(gone.upgrade().is_none(), "nobody holds what a server no longer offers");
    }

    #[test]
    fn many_ways_to_see_it_are_not_all_kept() {
        let (s, all) = ("s".parse().unwrap(), catalogue());
        for n in 0..3 * KEPT {
            let rules = rules(&format!("{HIDES}[[policies.p.rules]]\ntool = 't{n}'\ndecision = 'deny'\n"), "x");
            assert!(all.view(&rules, &s).tool("a").is_none());
        }
        assert!(all.views.0.lock().unwrap().len() <= KEPT);
    }
}
