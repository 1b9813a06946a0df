//! How much work a schema can cause, counted before anything is evaluated.
//!
//! A schema of an untrusted server can ask for work that doubles with every reference (`allOf` of two references to
//! a schema that does the same) or with every level of the value. So the schema is read as a graph: each subschema
//! is a node, with edges to what is applied at the same place of the value (`allOf`, `$ref`, `if`) and to what is
//! applied one level below it (`properties`, `items`). From that follows, for each depth, the most evaluations that
//! any single place of a value at that depth can cost ([`Cost::bound`]). The bound is exact for trees and errs to
//! the high side elsewhere.
//!
//! Refused here: a `$ref` that leaves the schema or names nothing, one that leads back to itself at the same place,
//! and schemas with more nodes or longer chains than the compiler should be trusted with.

use std::collections::HashMap;

use footbridge_proto::json::MAX_ARGUMENT_DEPTH;
use serde_json::Value;

use super::BadSchema;

/// Subschemas of one schema.
const MAX_NODES: usize = 5_000;
/// Subschemas applied to one place of the value, one through the other.
const MAX_CHAIN: usize = 64;

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

/// The most evaluations at one place of a value, by how deep that place is.
#[derive(Debug)]
pub(super) struct Cost {
    at_depth: Vec<u64>,
    chain: usize,
}

impl Cost {
    /// Reads a schema.
    pub(super) fn of(schema: &Value) -> Result<Self, BadSchema> {
        let graph = Graph::read(schema)?;
        let order = graph.order()?;
        let chain = graph.longest_chain(&order)?;
        Ok(Self { at_depth: graph.evaluations(&order), chain })
    }

    /// The most evaluations that checking this value can take.
    pub(super) fn bound(&self, value: &Value) -> u64 {
        let mut places = vec![0_u64; MAX_ARGUMENT_DEPTH + 1];
        count_places(value, 0, &mut places);
        let products = places.iter().zip(&self.at_depth).map(|(n, cost)| n.saturating_mul(*cost));
        products.fold(0, u64::saturating_add)
    }

    /// How many evaluations can be nested for one place of a value.
    pub(super) fn chain(&self) -> usize {
        self.chain
    }
}

fn count_places(value: &Value, depth: usize, places: &mut [u64]) {
    let Some(here) = places.get_mut(depth) else { return };
    *here += 1;
    match value {
        Value::Array(items) => items.iter().for_each(|item| count_places(item, depth + 1, places)),
        Value::Object(members) => members.values().for_each(|member| count_places(member, depth + 1, places)),
        _ => {}
    }
}

#[derive(Default)]
struct Node {
    /// Its own work: one, and what its lists of plain values add.
    weight: u64,
    here: Vec<usize>,
    one_below: Vec<usize>,
    each_below: Vec<usize>,
}

struct Graph {
    nodes: Vec<Node>,
}

/// Reads the schema's values into nodes; a value is known by its address, which stands still meanwhile.
struct Reader<'a> {
    root: &'a Value,
    anchors: HashMap<&'a str, Vec<&'a Value>>,
    ids: HashMap<*const Value, usize>,
    queue: Vec<&'a Value>,
}

impl Graph {
    fn read(root: &Value) -> Result<Self, BadSchema> {
        let mut reader = Reader { root, anchors: HashMap::new(), ids: HashMap::new(), queue: Vec::new() };
        reader.find_anchors(root, true)?;
        reader.id(root);
        let mut nodes = Vec::new();
        while let Some(&schema) = reader.queue.get(nodes.len()) {
            if nodes.len() == MAX_NODES {
                return Err(BadSchema::TooLarge(MAX_NODES));
            }
            nodes.push(reader.node(schema)?);
        }
        Ok(Self { nodes })
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

    fn evaluations(&self, order: &[usize]) -> Vec<u64> {
        let mut above: Vec<u64> = Vec::new();
        let mut at_depth = Vec::with_capacity(MAX_ARGUMENT_DEPTH + 1);
        for depth in 0..=MAX_ARGUMENT_DEPTH {
            let mut now = vec![0_u64; self.nodes.len()];
            for &id in order {
                let node = &self.nodes[id];
                let own = if depth == 0 {
                    node.weight
                } else {
                    let one = node.one_below.iter().map(|&child| above[child]).max().unwrap_or(0);
                    node.each_below.iter().fold(one, |sum, &child| sum.saturating_add(above[child]))
                };
                now[id] = node.here.iter().fold(own, |sum, &child| sum.saturating_add(now[child]));
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
            match value {
                Value::String(target) if matches!(key, "$ref" | "$dynamicRef" | "$recursiveRef") => {
                    let targets = self.resolve(target)?;
                    node.here.extend(targets.into_iter().map(|t| self.id(t)));
                }
                Value::Array(list) if key == "enum" || key == "required" => node.weight += list.len() as u64,
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
