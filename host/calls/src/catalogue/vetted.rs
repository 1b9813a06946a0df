//! What a server offers, compared with its pins.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock, PoisonError, Weak},
};

use footbridge_core::{
    catalogue::{ChangedTool, Entries, Gaps, INSTRUCTIONS, Instructions, Offered, Tool},
    digest::Digest,
    gate::SessionRules,
    names::ServerName,
};
use footbridge_proto::wire::Implementation;

use super::visible::{Changed, Seen, Visible};

/// Most views that are kept. Sessions of one policy that differ in labels which no rule asks for share one.
const KEPT: usize = 64;

/// What of a server's offer is as it was pinned, and what is not. It is made by [`Pins`](crate::pins::Pins), or by
/// [`Vetted::without_pins`]. What is in it shows to nobody but by way of a session's rules, as a [`Visible`].
#[derive(Debug)]
pub struct Vetted {
    server: ServerName,
    /// What it is of.
    of: Weak<Offered>,
    entries: Arc<Entries>,
    gaps: Arc<Gaps>,
    /// What the server says of itself, if that is as it was pinned.
    instructions: Option<Arc<Instructions>>,
    /// Whether what it says of itself is not what was pinned.
    says_other: bool,
    implementation: Option<Arc<Implementation>>,
    /// Tools that are not what was pinned, by what was: they are not among the others.
    changed: Arc<Changed>,
    /// By the rules: made once for all sessions that see the same, and gone with this.
    views: Mutex<HashMap<Digest, Visible>>,
}

impl Vetted {
    /// All that is offered, compared with no pins: for a harness that has none, and for an operator's look at what is
    /// there.
    #[must_use]
    pub fn without_pins(server: ServerName, offered: &Arc<Offered>) -> Self {
        Self::against_pins(server, offered, [])
    }

    /// What is offered, in which these tools cannot be called.
    pub(crate) fn against_pins(
        server: ServerName,
        offered: &Arc<Offered>,
        changed: impl IntoIterator<Item = (String, ChangedTool)>,
    ) -> Self {
        let mut changed: Changed = changed.into_iter().map(|(name, tool)| (name.into(), tool)).collect();
        let says_other = changed.remove(INSTRUCTIONS).is_some();
        Self {
            server,
            instructions: offered.instructions().filter(|_| !says_other).cloned(),
            says_other,
            implementation: offered.implementation().cloned(),
            of: Arc::downgrade(offered),
            entries: offered.entries().without_tools(|name| changed.contains_key(name)),
            gaps: Arc::new(offered.gaps().clone()),
            changed: Arc::new(changed),
            views: Mutex::default(),
        }
    }

    /// Whether it came of this. The weak pointer keeps the place of what it pointed to, so no other can be there.
    pub(crate) fn is_of(&self, offered: &Arc<Offered>) -> bool {
        self.of.as_ptr() == Arc::as_ptr(offered)
    }

    /// The names of the tools whose definition is not the one that was pinned. They cannot be called.
    pub fn changed(&self) -> impl ExactSizeIterator<Item = &str> {
        self.changed.keys().map(|name| &**name)
    }

    /// Whether what the server says of itself is not what was pinned. It is told to nobody.
    #[must_use]
    pub fn says_other(&self) -> bool {
        self.says_other
    }

    /// The tool with exactly this name, to be compared with what a call was decided about.
    pub(crate) fn tool(&self, name: &str) -> Option<&Arc<Tool>> {
        self.entries.tool(name)
    }

    /// What these rules leave to be seen of it, as if there were no more.
    #[must_use]
    pub fn visible(&self, rules: &SessionRules) -> Visible {
        let mut views = self.views.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(view) = views.get(&rules.digest()) {
            return view.clone();
        }
        let view = Visible::new(if rules.hides() { self.part(rules) } else { self.whole(rules) });
        if views.len() >= KEPT {
            views.clear();
        }
        views.insert(rules.digest(), view.clone());
        view
    }

    fn whole(&self, rules: &SessionRules) -> Seen {
        Seen {
            server: self.server.clone(),
            rules: rules.clone(),
            entries: Arc::clone(&self.entries),
            changed: Arc::clone(&self.changed),
            gaps: Arc::clone(&self.gaps),
            instructions: self.instructions.clone(),
            implementation: self.implementation.clone(),
            listed_only: false,
            catalogue: OnceLock::new(),
            bytes: OnceLock::new(),
        }
    }

    /// What is left by rules that hide something, if not of this server.
    fn part(&self, rules: &SessionRules) -> Seen {
        let name = self.server.as_str();
        let mut changed = Arc::clone(&self.changed);
        if !changed.is_empty() {
            Arc::make_mut(&mut changed).retain(|tool, was| rules.shows(&rules.tool(name, tool, was.effects())));
        }
        let entries = self.entries.seen_by(rules, name);
        let gaps = Arc::new(self.gaps.without_entries());
        // They may speak of what is hidden.
        let is_whole = Arc::ptr_eq(&entries, &self.entries) && changed.len() == self.changed.len();
        let listed_only = rules.hides_resources_of(name);
        let instructions = self.instructions.clone().filter(|_| is_whole && !listed_only);
        Seen { entries, changed, gaps, instructions, listed_only, ..self.whole(rules) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    use footbridge_core::{
        catalogue::ListKind, gate::Policy, limits::ServerLimits, names::Labels, policy_file::policies_of,
    };
    use serde_json::value::RawValue;

    fn rules(text: &str, team: &str) -> SessionRules {
        let policies = policies_of(text).unwrap();
        SessionRules::new(policies.get("p").unwrap(), &Labels::from([("team".to_owned(), team.to_owned())]))
    }

    fn offered() -> Arc<Offered> {
        let mut offered = Offered::default();
        for name in ["a", "b"] {
            offered.add_tool(&tool(name), &ServerLimits::default()).unwrap();
        }
        Arc::new(offered)
    }

    fn tool(name: &str) -> Box<RawValue> {
        RawValue::from_string(format!(r#"{{"name":"{name}","inputSchema":{{}}}}"#)).unwrap()
    }

    fn unpinned(server: &str) -> Vetted {
        Vetted::without_pins(server.parse().unwrap(), &offered())
    }

    const HIDES: &str = "[[policies.p.rules]]\ntool = 'a'\nserver = 's'\ndecision = 'hide'\nlabels = { team = 'x*' }\n";

    #[test]
    fn whoever_sees_the_same_shares_it_and_it_goes_with_its_catalogue() {
        let (all, other) = (unpinned("s"), unpinned("other"));
        let seen = all.visible(&rules(HIDES, "x1"));
        assert!(seen.entries().tool("a").is_none() && seen.entries().tool("b").is_some());
        let is_whole = |of: &Vetted, seen: &Visible| Arc::ptr_eq(&of.entries, seen.entries());
        assert!(Arc::ptr_eq(seen.entries(), all.visible(&rules(HIDES, "x2")).entries()), "the same rules are for both");
        assert!(is_whole(&all, &all.visible(&rules(HIDES, "y"))), "nothing is hidden from this one");
        assert!(is_whole(&other, &other.visible(&rules(HIDES, "x1"))), "nothing of this server is hidden");
        let gone = Arc::downgrade(seen.entries());
        drop((seen, all));
        assert!(gone.upgrade().is_none(), "nobody holds what a server no longer offers");
    }

    #[test]
    fn instructions_show_where_nothing_is_hidden_and_they_are_as_pinned() {
        let mut offered = Arc::into_inner(offered()).unwrap();
        offered.set_instructions("Use a before b", &ServerLimits::default());
        let (offered, open) = (Arc::new(offered), SessionRules::new(Policy::open(), &Labels::default()));
        let vetted = Vetted::without_pins("s".parse().unwrap(), &offered);
        fn shown(vetted: &Vetted, rules: &SessionRules) -> Option<String> {
            vetted.visible(rules).instructions().map(ToOwned::to_owned)
        }
        assert_eq!(shown(&vetted, &open).as_deref(), Some("Use a before b"));
        assert_eq!(shown(&vetted, &rules(HIDES, "y")).as_deref(), Some("Use a before b"));
        assert_eq!(shown(&vetted, &rules(HIDES, "x1")), None, "they may speak of a");
        let changed = [(INSTRUCTIONS.to_owned(), ChangedTool::by_pin(""))];
        let vetted = Vetted::against_pins("s".parse().unwrap(), &offered, changed);
        assert_eq!((shown(&vetted, &open), vetted.changed().len()), (None, 0));
    }

    #[test]
    fn a_catalogue_has_another_text_where_anything_that_is_seen_is_another() {
        let of = |change: &dyn Fn(&mut Offered), policy: &str| {
            let mut offered = Arc::into_inner(offered()).unwrap();
            change(&mut offered);
            let vetted = Vetted::without_pins("s".parse().unwrap(), &Arc::new(offered));
            vetted.visible(&rules(policy, "x1")).catalogue().to_owned()
        };
        let limits = ServerLimits::default();
        let (open, same) = ("[policies.p]\n", |_: &mut Offered| ());
        let resource = |uri: &str| RawValue::from_string(format!(r#"{{"uri":"{uri}"}}"#)).unwrap();
        let program = |version: &str| Implementation { name: "n".into(), title: None, version: version.into() };
        let allows = "[[policies.p.rules]]\ntool = 'a'\ndecision = 'allow'\n";
        let all = [
            of(&same, open),
            of(&same, HIDES),
            of(&same, allows),
            of(&|offered| offered.set_instructions("Use a", &limits), open),
            of(&|offered| offered.add_resource(resource("u:1"), &limits).unwrap(), open),
            of(&|offered| offered.add_resource(resource("u:2"), &limits).unwrap(), open),
            of(&|offered| offered.set_implementation(&program("1")), open),
            of(&|offered| offered.set_implementation(&program("2")), open),
            of(&|offered| offered.gaps_mut().cut(ListKind::Tools, "why"), open),
        ];
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len(), "{all:?}");
        assert_eq!(
            all[0],
            of(&same, &open.replace("[policies.p]", "# another text\n[policies.p]")),
            "not of its rules"
        );
        let b_alone = of(&|offered| offered.add_tool(&tool("c"), &limits).unwrap(), &HIDES.replace("'a'", "'c'"));
        assert_eq!(b_alone, all[0], "nothing of what is hidden is in it");
        assert!(all[0].len() == 32 && all[0].bytes().all(|digit| digit.is_ascii_hexdigit()), "{all:?}");
    }

    #[test]
    fn many_ways_to_see_it_are_not_all_kept() {
        let all = unpinned("s");
        for n in 0..3 * KEPT {
            let rules = rules(&format!("{HIDES}[[policies.p.rules]]\ntool = 't{n}'\ndecision = 'deny'\n"), "x");
            assert!(all.visible(&rules).entries().tool("a").is_none());
        }
        assert!(all.views.lock().unwrap().len() <= KEPT);
    }

    #[test]
    fn a_changed_tool_is_among_the_changed_alone_and_hidden_by_what_it_was() {
        let reads = r#"{"tool":{"name":"a","annotations":{"readOnlyHint":true,"openWorldHint":false}}}"#;
        let changed = |pin: &str| [("a".to_owned(), ChangedTool::by_pin(pin))];
        let vetted = |pin: &str| Vetted::against_pins("s".parse().unwrap(), &offered(), changed(pin));
        let open = SessionRules::new(Policy::open(), &Labels::default());
        let seen = vetted(reads).visible(&open);
        assert!(seen.entries().tool("a").is_none() && seen.entries().tool("b").is_some());
        assert_eq!(seen.changed().map(|(name, _)| name).collect::<Vec<_>>(), ["a"]);
        let hides = rules("[[policies.p.rules]]\neffects = ['write']\ndecision = 'hide'\n", "x");
        assert_eq!(vetted(reads).visible(&hides).changed().len(), 1);
        assert_eq!(vetted("rubbish").visible(&hides).changed().len(), 0, "of a pin that says nothing the worst holds");
    }
}
