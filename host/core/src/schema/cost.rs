//! How much work a schema can cause, counted before anything is evaluated.
//!
//! A schema of an untrusted server can ask for work that doubles with every reference (`allOf` of two references to
//! a schema that does the same) or with every level of the value. So the schema is read as a graph: each subschema
//! is a node, with edges to what is applied at the same place of the value (`allOf`, `$ref`, `if`) and to what is
//! applied one level below it (`properties`, `items`). From that follows, for each depth, the most evaluations that
//! any single place of a value at that depth can cost ([`Cost::bound`]). The bound is exact for trees and errs to
//! the high side elsewhere.
//!
//! A text is read by patterns and by what counts its characters, each as often as its subschema applies: the same graph
//! gives, for each depth, the bytes of compiled patterns that a text there is read by. Names of members are texts too.
//!
//! Where the items of a list must differ (`uniqueItems`), all that is in the list is hashed or compared, as often as
//! such a subschema applies to it, and once more for each such list around it.
//!
//! Refused here: a `$ref` that leaves the schema or names nothing, one that leads back to itself at the same place,
//! and schemas with more nodes or longer chains than the compiler should be trusted with.

use std::collections::HashMap;

use footbridge_proto::json::MAX_ARGUMENT_DEPTH;
use serde_json::Value;

use super::{BadSchema, patterns::Patterns};

/// Subschemas of one schema.
const MAX_NODES: usize = 5_000;
/// Times that one subschema of a schema leads to another. Each has a place and may be referred to; more are only where
/// one anchor is at many places, and many references name it.
const MAX_LINKS: usize = 4 * MAX_NODES;
/// Subschemas applied to one place of the value, one through the other.
const MAX_CHAIN: usize = 64;

/// Bytes of compiled patterns by which one byte of a text is read at the cost of one evaluation.
const STEP: u64 = 2048;
/// What keywords that count characters cost, in bytes of compiled patterns.
const COUNTING: u64 = 8;
/// What a format costs, in bytes of compiled patterns.
const FORMAT: u64 = 1024;
/// What a value in a list costs whose items must differ, in evaluations: it is hashed with its item, or compared with up
/// to 14 others.
const HASHED: u64 = 8;
/// Bytes of a text that are hashed at the cost of one evaluation.
const HASHED_BYTES: u64 = 16;
/// Bytes of a text that are compared at the cost of one evaluation.
const COMPARED_BYTES: u64 = 1024;
/// Bytes that a subschema takes once it is compiled, and those that a pattern takes besides what it is compiled to: the
/// automata that are made of it as it is used.
const NODE_BYTES: usize = 1024;
const PATTERN_BYTES: usize = 64 * 1024;

/// Keywords whose value is a schema, applied where the schema itself is.
const HERE: [&str; 4] = ["not", "if", "then", "else"];
/// Keywords whose value is a list of schemas, applied where the schema itself is.
const HERE_LISTS: [&str; 3] = ["allOf", "anyOf", "oneOf"];
/// Keywords whose value is a map of schemas, applied where the schema itself is.
const HERE_MAPS: [&str; 2] = ["dependentSchemas", "dependencies"];
/// Keywords whose value is a schema that a member or item may get when no other took it.
const ONE_BELOW: [&str; 5] =
    ["additionalProperties", "unevaluatedProperties", "items", "additionalItems", "unevaluatedItems"];
/// Keywords whose value is a schema that members or items get besides the others.
const EACH_BELOW: [&str; 2] = ["propertyNames", "contains"];

/// What checking a value can cost at most.
#[derive(Debug)]
pub(super) struct Cost {
    /// The most evaluations at one place of a value, by how deep that place is.
    at_depth: Vec<u64>,
    /// The bytes of patterns by which a text there is read, by how deep it is.
    of_texts: Vec<u64>,
    /// How often a list there is looked through for items that are equal, by how deep it is.
    of_lists: Vec<u64>,
    chain: usize,
    bytes: usize,
}

/// How many places a value has at each depth, how many bytes the texts there have, and what it costs to compare the
/// items of the lists there.
struct Places {
    places: Vec<u64>,
    texts: Vec<u64>,
    lists: Vec<u64>,
}

impl Cost {
    /// Reads a schema.
    pub(super) fn of(schema: &Value) -> Result<Self, BadSchema> {
        let graph = Graph::read(schema)?;
        let order = graph.order()?;
        let chain = graph.longest_chain(&order)?;
        let at_depth = graph.sums(&order, |node| node.weight);
        let of_texts = graph.sums(&order, |node| node.reads);
        let of_lists = graph.sums(&order, |node| node.compares);
        Ok(Self { at_depth, of_texts, of_lists, chain, bytes: graph.bytes })
    }

    /// The most evaluations that checking this value can take.
    pub(super) fn bound(&self, value: &Value) -> u64 {
        let depths = MAX_ARGUMENT_DEPTH + 1;
        let mut places = Places { places: vec![0; depths], texts: vec![0; depths], lists: vec![0; depths] };
        places.count(value, 0);
        let evaluations = products(&places.places, &self.at_depth);
        let evaluations = evaluations.saturating_add(products(&places.lists, &self.of_lists));
        evaluations.saturating_add(products(&places.texts, &self.of_texts) / STEP)
    }

    /// The most evaluations that checking any value of so many bytes can take.
    pub(super) fn most(&self, bytes: usize) -> u64 {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let most = |of: &[u64]| of.iter().copied().max().unwrap_or(0);
        // A place has a character and one beside it; a name counts twice.
        let evaluations = most(&self.at_depth).saturating_mul(bytes / 2 + 1);
        // What is in a list is in all lists around that.
        let lists = self.of_lists.iter().copied().fold(0, u64::saturating_add);
        let evaluations = evaluations.saturating_add(lists.saturating_mul((bytes / 2 + 1) * HASHED));
        evaluations.saturating_add(most(&self.of_texts).saturating_mul(2 * bytes) / STEP)
    }

    /// How many evaluations can be nested for one place of a value.
    pub(super) fn chain(&self) -> usize {
        self.chain
    }

    /// The bytes that the compiled schema takes, about.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

fn products(counts: &[u64], costs: &[u64]) -> u64 {
    let products = counts.iter().zip(costs).map(|(n, cost)| n.saturating_mul(*cost));
    products.fold(0, u64::saturating_add)
}

impl Places {
    /// Counts a value, and says what it costs to hash it.
    fn count(&mut self, value: &Value, depth: usize) -> u64 {
        let Some(here) = self.places.get_mut(depth) else { return 0 };
        *here += 1;
        match value {
            Value::Array(items) => {
                let within: u64 = items.iter().map(|item| self.count(item, depth + 1)).sum();
                self.lists[depth] += within;
                HASHED + within
            }
            Value::Object(members) => {
                let mut hashed = HASHED;
                for (name, member) in members {
                    // Read by the patterns of the object, and by what is said of its names, which is one level below.
                    self.read(name, depth);
                    self.read(name, depth + 1);
                    hashed += HASHED + name.len() as u64 / HASHED_BYTES + self.count(member, depth + 1);
                }
                hashed
            }
            Value::String(text) => {
                self.read(text, depth);
                HASHED + text.len() as u64 / HASHED_BYTES
            }
            _ => HASHED,
        }
    }

    fn read(&mut self, text: &str, depth: usize) {
        if let Some(bytes) = self.texts.get_mut(depth) {
            *bytes += text.len() as u64;
        }
    }
}

#[derive(Default)]
struct Node {
    /// Its own work: one, and what its lists of plain values add.
    weight: u64,
    /// By how many bytes of patterns it reads a text, or the names of an object.
    reads: u64,
    /// One where the items of a list must differ.
    compares: u64,
    /// Whether it asks what the others at its place found, which evaluates them again.
    again: bool,
    here: Vec<usize>,
    one_below: Vec<usize>,
    each_below: Vec<usize>,
}

struct Graph {
    nodes: Vec<Node>,
    bytes: usize,
}

/// Reads the schema's values into nodes; a value is known by its address, which stands still meanwhile.
struct Reader<'a> {
    root: &'a Value,
    anchors: HashMap<&'a str, Vec<&'a Value>>,
    ids: HashMap<*const Value, usize>,
    queue: Vec<&'a Value>,
    patterns: Patterns<'a>,
}

impl Graph {
    fn read(root: &Value) -> Result<Self, BadSchema> {
        let mut reader = Reader {
            root,
            anchors: HashMap::new(),
            ids: HashMap::new(),
            queue: Vec::new(),
            patterns: Patterns::default(),
        };
        reader.find_anchors(root, true)?;
        reader.id(root);
        let (mut nodes, mut links) = (Vec::new(), 0);
        while let Some(&schema) = reader.queue.get(nodes.len()) {
            if nodes.len() == MAX_NODES {
                return Err(BadSchema::TooLarge(MAX_NODES));
            }
            let node = reader.node(schema)?;
            links += node.here.len() + node.one_below.len() + node.each_below.len();
            if links > MAX_LINKS {
                return Err(BadSchema::TooTangled(MAX_LINKS));
            }
            nodes.push(node);
        }
        let (patterns, compiled) = reader.patterns.total();
        // Each is there forwards and backwards.
        let bytes = nodes.len() * NODE_BYTES + patterns * PATTERN_BYTES + 2 * compiled;
        Ok(Self { nodes, bytes })
    }

    /// Nodes with everything that a node applies at its own place before the node. A cycle is endless work.
    fn order(&self) -> Result<Vec<usize>, BadSchema> {
        let mut order = Vec::with_capacity(self.nodes.len());
        let mut seen = vec![false; self.nodes.len()];
        let mut open = vec![false; self.nodes.len()];
        for start in 0..self.nodes.len() {
            let mut stack = vec![(start, 0)];
            while let Some((node, next)) = stack.pop() {
                if next == 0 {
                    if seen[node] {
                        continue;
                    }
                    seen[node] = true;
                    open[node] = true;
                }
                match self.nodes[node].here.get(next) {
                    Some(&child) if open[child] => return Err(BadSchema::Endless),
                    Some(&child) => stack.extend([(node, next + 1), (child, 0)]),
                    None => {
                        open[node] = false;
                        order.push(node);
                    }
                }
            }
        }
        Ok(order)
    }

    fn longest_chain(&self, order: &[usize]) -> Result<usize, BadSchema> {
        let mut chain = vec![0_usize; self.nodes.len()];
        for &node in order {
            chain[node] = 1 + self.nodes[node].here.iter().map(|&child| chain[child]).max().unwrap_or(0);
        }
        let longest = chain.into_iter().max().unwrap_or(0);
        if longest > MAX_CHAIN { Err(BadSchema::TooLong(MAX_CHAIN)) } else { Ok(longest) }
    }

    /// For each depth, the sum of what the subschemas weigh that can apply to one place there.
    fn sums(&self, order: &[usize], weight: impl Fn(&Node) -> u64) -> Vec<u64> {
        let mut above: Vec<u64> = Vec::new();
        let mut at_depth = Vec::with_capacity(MAX_ARGUMENT_DEPTH + 1);
        for depth in 0..=MAX_ARGUMENT_DEPTH {
            let mut now = vec![0_u64; self.nodes.len()];
            for &id in order {
                let node = &self.nodes[id];
                let own = if depth == 0 {
                    weight(node)
                } else {
                    let one = node.one_below.iter().map(|&child| above[child]).max().unwrap_or(0);
                    node.each_below.iter().fold(one, |sum, &child| sum.saturating_add(above[child]))
                };
                let once = node.here.iter().fold(own, |sum, &child| sum.saturating_add(now[child]));
                now[id] = if node.again { once.saturating_mul(2) } else { once };
            }
            at_depth.push(now.first().copied().unwrap_or(0));
            above = now;
        }
        at_depth
    }
}

impl<'a> Reader<'a> {
    fn id(&mut self, schema: &'a Value) -> usize {
        let next = self.queue.len();
        let id = *self.ids.entry(std::ptr::from_ref(schema)).or_insert(next);
        if id == next {
            self.queue.push(schema);
        }
        id
    }

    fn find_anchors(&mut self, value: &'a Value, root: bool) -> Result<(), BadSchema> {
        match value {
            Value::Object(map) => {
                for key in ["$anchor", "$dynamicAnchor"] {
                    if let Some(Value::String(name)) = map.get(key) {
                        self.anchors.entry(name).or_default().push(value);
                    }
                }
                if !root && matches!(map.get("$id"), Some(Value::String(_))) {
                    return Err(BadSchema::InnerId);
                }
                map.values().try_for_each(|v| self.find_anchors(v, false))
            }
            Value::Array(items) => items.iter().try_for_each(|v| self.find_anchors(v, false)),
            _ => Ok(()),
        }
    }

    fn node(&mut self, schema: &'a Value) -> Result<Node, BadSchema> {
        let mut node = Node { weight: 1, ..Node::default() };
        let Value::Object(map) = schema else { return Ok(node) };
        for (key, value) in map {
            let key = key.as_str();
            node.reads = node.reads.saturating_add(self.reads(key, value)?);
            node.weight = node.weight.saturating_add(weight(key, value));
            node.again |= matches!(key, "unevaluatedProperties" | "unevaluatedItems");
            match value {
                Value::Bool(true) if key == "uniqueItems" => node.compares = 1,
                Value::String(target) if matches!(key, "$ref" | "$dynamicRef" | "$recursiveRef") => {
                    let targets = self.resolve(target)?;
                    node.here.extend(targets.into_iter().map(|t| self.id(t)));
                }
                Value::Array(list) if HERE_LISTS.contains(&key) => node.here.extend(list.iter().map(|s| self.id(s))),
                Value::Array(list) if key == "prefixItems" || key == "items" => {
                    node.one_below.extend(list.iter().map(|s| self.id(s)));
                }
                Value::Object(map) if HERE_MAPS.contains(&key) => {
                    node.here.extend(map.values().filter(|s| !s.is_array()).map(|s| self.id(s)));
                }
                Value::Object(map) if key == "properties" => node.one_below.extend(map.values().map(|s| self.id(s))),
                Value::Object(map) if key == "patternProperties" => {
                    node.each_below.extend(map.values().map(|s| self.id(s)));
                }
                _ if HERE.contains(&key) => node.here.push(self.id(value)),
                _ if ONE_BELOW.contains(&key) => node.one_below.push(self.id(value)),
                _ if EACH_BELOW.contains(&key) => node.each_below.push(self.id(value)),
                _ => {}
            }
        }
        Ok(node)
    }

    /// By how many bytes of patterns a keyword reads a text or the names of an object.
    fn reads(&mut self, key: &str, value: &'a Value) -> Result<u64, BadSchema> {
        match value {
            Value::String(pattern) if key == "pattern" => Ok(self.patterns.size(pattern)? as u64),
            Value::Object(map) if key == "patternProperties" => {
                // Twice: what no pattern takes is for others to say.
                map.keys().try_fold(0, |sum, pattern| Ok(sum + 2 * self.patterns.size(pattern)? as u64))
            }
            _ if matches!(key, "minLength" | "maxLength") => Ok(COUNTING),
            _ if matches!(key, "format" | "contentEncoding" | "contentMediaType") => Ok(FORMAT),
            _ => Ok(0),
        }
    }

    /// What a reference names: the root, a JSON pointer below it (RFC 6901), or an anchor.
    fn resolve(&self, target: &str) -> Result<Vec<&'a Value>, BadSchema> {
        let refused = || BadSchema::Reference(target.chars().take(100).collect());
        let fragment = target.strip_prefix('#').ok_or_else(refused)?;
        if fragment.is_empty() {
            return Ok(vec![self.root]);
        }
        if fragment.starts_with('/') {
            // A percent-encoded pointer could be read in two ways; no generator of tool schemas writes one.
            let found = self.root.pointer(fragment).filter(|_| !fragment.contains('%'));
            return Ok(vec![found.ok_or_else(refused)?]);
        }
        self.anchors.get(fragment).cloned().ok_or_else(refused)
    }
}

/// The largest integer below which a double has all of them.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// What it costs to divide by what is no such integer: where the value or this is very large or small it is done with
/// fractions of any length. Measured: 18 us, where a unit is a tenth of one.
const FRACTION: u64 = 200;

/// What a keyword costs at one place besides what its subschemas do: the names that it looks up, and the values that it
/// compares with what is there, with all that is in them.
fn weight(key: &str, value: &Value) -> u64 {
    let names = |list: &Value| list.as_array().map_or(0, |list| list.len() as u64);
    match (key, value) {
        ("required", names_of) => names(names_of),
        ("dependentRequired" | "dependencies", Value::Object(map)) => map.values().map(|list| 1 + names(list)).sum(),
        ("enum", Value::Array(list)) => list.iter().map(compared).sum(),
        ("const", value) => compared(value),
        ("multipleOf", Value::Number(of)) if of.as_f64().is_none_or(|of| of.fract() != 0.0 || of > EXACT) => FRACTION,
        _ => 0,
    }
}

fn compared(value: &Value) -> u64 {
    match value {
        Value::Array(items) => 1 + items.iter().map(compared).sum::<u64>(),
        Value::Object(members) => 1 + members.values().map(|member| 1 + compared(member)).sum::<u64>(),
        Value::String(text) => 1 + text.len() as u64 / COMPARED_BYTES,
        _ => 1,
    }
}
