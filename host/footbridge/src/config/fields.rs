//! Reading an object member by member: what was expected where something else is written, every mistake at its place,
//! and which names are not known.

use std::collections::BTreeSet;

use footbridge_core::settings_file::{Mistake, closest};

use super::node::{Member, Node, NodeValue, WrittenAt};

/// The members of an object that is being read.
#[derive(Debug)]
pub(crate) struct Fields<'n> {
    members: &'n [Member],
    /// What is being read, in front of each mistake.
    label: String,
    known: BTreeSet<&'static str>,
    mistakes: Vec<Mistake>,
    lacking: Vec<Mistake>,
}

impl<'n> Fields<'n> {
    /// The members of this object, which mistakes call by this name.
    pub(crate) fn of(node: &'n Node, label: String) -> Result<Self, Mistake> {
        match node.members() {
            Some(members) => {
                Ok(Self { members, label, known: BTreeSet::new(), mistakes: Vec::new(), lacking: Vec::new() })
            }
            None => {
                let what = format!("{label}: it is {}, and an object in braces is expected", node.kind());
                Err(node.at.mistake(what))
            }
        }
    }

    /// Something wrong at a place.
    pub(crate) fn wrong(&mut self, at: &WrittenAt, what: impl std::fmt::Display) {
        self.mistakes.push(at.mistake(format!("{}: {what}", self.label)));
    }

    /// The same, unless it was said of another place.
    pub(crate) fn wrong_once(&mut self, at: &WrittenAt, what: impl std::fmt::Display) {
        let mistake = at.mistake(format!("{}: {what}", self.label));
        if !self.mistakes.iter().any(|said| said.what == mistake.what) {
            self.mistakes.push(mistake);
        }
    }

    /// A value at a place that is written well and is not there.
    pub(crate) fn lacks(&mut self, at: &WrittenAt, what: impl std::fmt::Display) {
        let lacking = self.note(at, what);
        self.lacking.push(lacking);
    }

    /// Something odd at a place.
    pub(crate) fn note(&self, at: &WrittenAt, what: impl std::fmt::Display) -> Mistake {
        at.mistake(format!("{}: {what}", self.label))
    }

    /// A member, unless it is null.
    pub(crate) fn member(&mut self, name: &'static str) -> Option<&'n Member> {
        self.known.insert(name);
        self.members.iter().find(|member| member.name == name && member.node.value != NodeValue::Null)
    }

    /// A member that is a text.
    pub(crate) fn text(&mut self, name: &'static str) -> Option<(&'n str, &'n WrittenAt)> {
        let member = self.member(name)?;
        let found = member.node.text().map(|text| (text, &member.node.at));
        found.or_else(|| self.unexpected(member, "a text in double quotes"))
    }

    /// A member that is true or false.
    pub(crate) fn flag(&mut self, name: &'static str) -> Option<bool> {
        let member = self.member(name)?;
        let found = if let NodeValue::Bool(value) = member.node.value { Some(value) } else { None };
        found.or_else(|| self.unexpected(member, "true or false"))
    }

    /// The elements of a member that is a list; none where there is no such member.
    pub(crate) fn list(&mut self, name: &'static str) -> &'n [Node] {
        let found = self.member(name).and_then(|member| {
            member.node.elements().or_else(|| self.unexpected(member, "a list, as in [\"a\", \"b\"],"))
        });
        found.unwrap_or_default()
    }

    /// The members of a member that is an object; none where there is no such member.
    pub(crate) fn object(&mut self, name: &'static str) -> &'n [Member] {
        let found = self.member(name).and_then(|member| {
            member.node.members().or_else(|| self.unexpected(member, "an object, as in {\"NAME\": \"value\"},"))
        });
        found.unwrap_or_default()
    }

    fn unexpected<T>(&mut self, member: &Member, expected: &str) -> Option<T> {
        let what = format!("\"{}\" is {}, and {expected} is expected", member.name, member.node.kind());
        self.wrong(&member.node.at, what);
        None
    }

    /// Members that nobody asked for, each with the known name that may be meant. Names of `others` are never taken for
    /// a typing error.
    pub(crate) fn unknown(&self, others: &[&str]) -> Vec<(&'n Member, Option<&'static str>)> {
        let strange = self.members.iter().filter(|member| !self.known.contains(member.name.as_str()));
        let meant = |name: &str| {
            let unwritten = self.known.iter().copied().filter(|known| !self.members.iter().any(|m| m.name == *known));
            if others.contains(&name) { None } else { closest(name, unwritten) }
        };
        strange.map(|member| (member, meant(&member.name))).collect()
    }

    /// What is wrong with a part that cannot be read at all.
    pub(crate) fn wrong_as(&mut self, mistake: Mistake) {
        self.mistakes.push(mistake);
    }

    /// What is wrong with a part that was read by itself, and what it lacks.
    pub(crate) fn also(&mut self, part: Fields<'_>) {
        self.mistakes.extend(part.mistakes);
        self.lacking.extend(part.lacking);
    }

    /// The values that are not there.
    pub(crate) fn lacking(&mut self) -> Vec<Mistake> {
        std::mem::take(&mut self.lacking)
    }

    /// All that is wrong.
    pub(crate) fn into_mistakes(self) -> Vec<Mistake> {
        self.mistakes
    }
}
