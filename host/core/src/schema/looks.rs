//! A schema without the patterns that look ahead or back, and that refuses nothing that the schema takes.
//!
//! The schema is read into its parts once, and what becomes of one is handed on from there: to what it stands in, to what
//! refers to it, and, where it goes, to what referred to something in it. No part changes more than three times, and no
//! reference is followed more than twice, so the work is of the schema's size, however it is tangled.

use std::{
    borrow::Cow,
    collections::HashMap,
    iter::{successors, zip},
};

use serde_json::{Map, Value};

use super::patterns::{MAX_PATTERNS, looks};

/// Members of a schema whose values are values, not schemas.
const VALUES: [&str; 4] = ["const", "enum", "default", "examples"];
/// Members whose members are schemas, by names that say nothing.
const NAMED: [&str; 6] =
    ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"];
/// Members by which what fits less fits more: what they hold cannot be made wider.
const TURNING: [&str; 4] = ["not", "oneOf", "if", "contains"];
/// Members that stand for another schema.
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];
/// Members by whose values a schema is referred to.
const ANCHORS: [&str; 2] = ["$anchor", "$dynamicAnchor"];
/// Members that hold for what others beside them say nothing of.
const UNEVALUATED: [&str; 2] = ["unevaluatedProperties", "unevaluatedItems"];
/// Members of a schema that say nothing of what fits: how the rest is read, and what is referred to.
const KEPT: [&str; 7] = ["$schema", "$id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$defs", "definitions"];

/// The schema without the patterns that texts have to match and that look ahead or back: none of them takes linear time,
/// and whoever wrote one has to check it. A pattern of names stays, since it says which schema a member has. What is left
/// refuses nothing that fits the schema: where one stands, or is referred to, below `not` and the like, the whole of that
/// goes, with what holds for what that says nothing of, and all but what is referred to of schemas that refer to it.
pub(super) fn without_looks(schema: &Value) -> Cow<'_, Value> {
    let mut parts = Vec::new();
    read(schema, "", None, &mut parts);
    let looks = looking(&parts);
    if looks.is_empty() {
        return Cow::Borrowed(schema);
    }
    let mut widening =
        Widening { parts, to_parts: HashMap::new(), to_anchors: HashMap::new(), has_turned: false, todo: Vec::new() };
    widening.find_references();
    looks.into_iter().for_each(|pattern| widening.leave_out_one(pattern));
    widening.carry_on();
    Cow::Owned(widening.rebuilt(0))
}

/// A value of the schema, by its place in the order in which they are read.
struct Part<'a> {
    value: &'a Value,
    /// The member of a schema that it is; nothing for an item, and where names say nothing.
    name: &'a str,
    within: Option<usize>,
    /// The first part behind all that is in it.
    end: usize,
    fate: Fate,
}

/// What becomes of a part. Each only gets a later one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    Same,
    /// It, or what it refers to, may take more than it did.
    Wider,
    /// It refers to what is gone: only what is referred to in it is left.
    Emptied,
    Gone,
}

/// Reads a value and all that is in it. What is in plain values is no part.
fn read<'a>(value: &'a Value, name: &'a str, within: Option<usize>, parts: &mut Vec<Part<'a>>) {
    let id = parts.len();
    parts.push(Part { value, name, within, end: id + 1, fate: Fate::Same });
    match value {
        _ if VALUES.contains(&name) => {}
        Value::Object(members) => {
            let says = !NAMED.contains(&name);
            members.iter().for_each(|(name, value)| read(value, if says { name } else { "" }, Some(id), parts));
        }
        Value::Array(items) => items.iter().for_each(|item| read(item, "", Some(id), parts)),
        _ => {}
    }
    parts[id].end = parts.len();
}

/// The patterns that look ahead or back.
fn looking(parts: &[Part<'_>]) -> Vec<usize> {
    let (mut seen, mut found) = (HashMap::new(), Vec::new());
    for (id, part) in parts.iter().enumerate().filter(|(_, part)| part.name == "pattern") {
        // Of more than a schema may have, no more are looked at.
        let Some(pattern) = part.value.as_str().filter(|_| seen.len() <= MAX_PATTERNS) else { continue };
        if *seen.entry(pattern).or_insert_with(|| looks(pattern)) {
            found.push(id);
        }
    }
    found
}

/// What is still to be done.
enum Step {
    Widen(usize),
    Empty(usize),
    LeaveOut(usize),
}

/// What makes a schema wider.
struct Widening<'a> {
    parts: Vec<Part<'a>>,
    /// Schemas that refer to a part, or to a plain value in it.
    to_parts: HashMap<usize, Vec<usize>>,
    /// Schemas that refer to an anchor.
    to_anchors: HashMap<&'a str, Vec<usize>>,
    /// Whether anything went by which what fits less fits more, or that says what is evaluated.
    has_turned: bool,
    todo: Vec<Step>,
}

impl<'a> Widening<'a> {
    /// Finds who refers to what. Whoever refers to what is no part may refer to anything.
    fn find_references(&mut self) {
        let places: HashMap<*const Value, usize> =
            self.parts.iter().enumerate().map(|(id, part)| (std::ptr::from_ref(part.value), id)).collect();
        for part in &self.parts {
            let (Some(target), Some(holder)) = (part.value.as_str(), part.within) else { continue };
            let Some(fragment) = target.strip_prefix('#').filter(|_| REFERENCES.contains(&part.name)) else {
                self.todo.extend(REFERENCES.contains(&part.name).then_some(Step::Widen(holder)));
                continue;
            };
            let found = fragment.starts_with('/').then(|| self.find(fragment, &places)).flatten();
            if let Some((id, _)) = found {
                self.to_parts.entry(id).or_default().push(holder);
            } else {
                self.to_anchors.entry(fragment).or_default().push(holder);
            }
            if !found.is_some_and(|(_, is_part)| is_part) {
                self.todo.push(Step::Widen(holder));
            }
        }
    }

    /// Where a pointer leads: to a part, or to a plain value in one.
    fn find(&self, pointer: &str, places: &HashMap<*const Value, usize>) -> Option<(usize, bool)> {
        let (mut value, mut id) = (self.parts[0].value, 0);
        let mut is_part = true;
        for token in pointer.split('/').skip(1) {
            let token = token.replace("~1", "/").replace("~0", "~");
            value = match value {
                Value::Object(members) => members.get(&token)?,
                Value::Array(items) => items.get(token.parse::<usize>().ok()?)?,
                _ => return None,
            };
            let place = places.get(&std::ptr::from_ref(value));
            id = place.copied().unwrap_or(id);
            is_part = place.is_some() && !VALUES.contains(&self.parts[id].name);
        }
        Some((id, is_part))
    }

    /// Does what there is to do, until nothing follows from it.
    fn carry_on(&mut self) {
        while let Some(step) = self.todo.pop() {
            match step {
                Step::Widen(id) => self.widen(id, Fate::Wider),
                Step::Empty(id) => self.empty(id),
                Step::LeaveOut(id) => self.leave_out(id),
            }
        }
    }

    /// A part takes more: so does what refers to it, and what it stands in, unless that turns what fits.
    fn widen(&mut self, id: usize, fate: Fate) {
        let before = self.parts[id].fate;
        self.parts[id].fate = before.max(fate);
        if before != Fate::Same {
            return;
        }
        self.todo.extend(self.to_parts.get(&id).into_iter().flatten().map(|&holder| Step::Widen(holder)));
        let Some(within) = self.parts[id].within else { return };
        self.todo.push(Step::Widen(within));
        let name = self.parts[id].name;
        let has_most = || self.parts[within].value.get("maxContains").is_some();
        if !TURNING.contains(&name) || name == "contains" && !has_most() {
            return;
        }
        self.turn();
        self.todo.push(Step::LeaveOut(id));
        if name == "if" {
            let branches = self.below(within).filter(|id| matches!(self.parts[*id].name, "then" | "else"));
            let branches: Vec<Step> = branches.map(Step::LeaveOut).collect();
            self.todo.extend(branches);
        }
    }

    /// A schema refers to what is gone: what stands beside that in it goes, too, since draft 7 does not look at it.
    fn empty(&mut self, id: usize) {
        if self.parts[id].fate >= Fate::Emptied {
            return;
        }
        self.widen(id, Fate::Emptied);
        self.turn();
        let gone: Vec<Step> =
            self.below(id).filter(|id| !KEPT.contains(&self.parts[*id].name)).map(Step::LeaveOut).collect();
        self.todo.extend(gone);
    }

    /// A part goes, and what refers to anything in it has to.
    fn leave_out(&mut self, id: usize) {
        let (mut at, end) = (id, self.parts[id].end);
        while at < end {
            let part = &mut self.parts[at];
            if part.fate == Fate::Gone {
                at = part.end;
                continue;
            }
            part.fate = Fate::Gone;
            let anchor = part.value.as_str().filter(|_| ANCHORS.contains(&part.name));
            let of_anchor = anchor.and_then(|anchor| self.to_anchors.remove(anchor));
            let holders = self.to_parts.remove(&at).into_iter().chain(of_anchor).flatten();
            self.todo.extend(holders.map(Step::Empty));
            at += 1;
        }
    }

    /// From now on less is known to be evaluated.
    fn turn(&mut self) {
        if self.has_turned {
            return;
        }
        self.has_turned = true;
        let all: Vec<usize> = (0..self.parts.len()).filter(|id| UNEVALUATED.contains(&self.parts[*id].name)).collect();
        all.into_iter().for_each(|id| self.leave_out_one(id));
    }

    /// A member goes, by which its schema takes more.
    fn leave_out_one(&mut self, id: usize) {
        self.todo.push(Step::LeaveOut(id));
        self.todo.extend(self.parts[id].within.map(Step::Widen));
    }

    /// What is right below a part.
    fn below(&self, id: usize) -> impl Iterator<Item = usize> {
        let end = self.parts[id].end;
        successors(Some(id + 1), |at| self.parts.get(*at).map(|part| part.end)).take_while(move |at| *at < end)
    }

    /// What is left of a part.
    fn rebuilt(&self, id: usize) -> Value {
        let part = &self.parts[id];
        match part.value {
            value if part.end == id + 1 => value.clone(),
            Value::Object(members) => {
                let left =
                    zip(members.keys(), self.below(id)).filter(|(_, below)| self.parts[*below].fate != Fate::Gone);
                Value::Object(left.map(|(name, below)| (name.clone(), self.rebuilt(below))).collect::<Map<_, _>>())
            }
            Value::Array(_) => self.below(id).map(|below| self.rebuilt(below)).collect(),
            other => other.clone(),
        }
    }
}
